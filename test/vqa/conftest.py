"""A server of language models, and a client of it for both APIs."""

import pytest
from support import scripted_model
from support.loopback_models import LoopbackModels, cached_client


@pytest.fixture
def server():
    with LoopbackModels(reply=scripted_model.reply) as models:
        yield models


@pytest.fixture(params=['openai', 'gemini'])
def client(request, server, monkeypatch, tmp_path):
    monkeypatch.setenv('GEMINI_API_KEY', 'sk-secret')
    return cached_client(server, tmp_path, request.param)
