"""Both APIs over real HTTP: what goes out, what comes back, what goes wrong."""

import base64
import json
import logging
from collections import deque

import pytest
from loopback_models import LoopbackModels, Misstep

from osmabench_ros.errors import ConfigError, LanguageModelError
from osmabench_ros.language.model import (
    ImagePart,
    ModelRequest,
    RefusalError,
    TransientModelError,
    Usage,
)
from osmabench_ros.language.registry import language_model_names, make_language_model

KEY = 'sk-secret-0123456789'
SCHEMA = {'type': 'object', 'properties': {'echo': {'type': 'integer'}}, 'required': ['echo']}
REQUEST = ModelRequest(
    'What is this?', 'You look at images.', (ImagePart(b'\x89PNG...'),), SCHEMA, 0.25, 321, 5
)


@pytest.fixture
def server():
    with LoopbackModels() as models:
        yield models


@pytest.fixture(params=['openai', 'gemini'])
def model(request, server, monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    monkeypatch.setenv('GEMINI_API_KEY', KEY)
    url = server.url + ('/v1' if request.param == 'openai' else '')
    return make_language_model(f'{request.param}:some-model', {'base_url': url, 'timeout_s': 2.0})


def test_a_reply_comes_back_with_its_tokens(model):
    reply = model.generate(REQUEST)
    assert json.loads(reply.text) == {'echo': len(REQUEST.prompt)}
    assert reply.usage == Usage(11, 7)
    assert not reply.cached


def test_everything_that_was_asked_for_is_sent(model, server):
    model.generate(REQUEST)
    (received,) = server.received
    sent = json.dumps(received.body)
    assert received.prompt == REQUEST.prompt
    assert 'some-model' in received.path + sent
    for piece in (REQUEST.system, base64.b64encode(b'\x89PNG...').decode(), 'image/png', 'echo'):
        assert piece in sent, piece
    config = received.body.get('generationConfig', received.body)
    assert config['temperature'] == 0.25
    assert config['seed'] == 5
    assert config.get('maxOutputTokens', config.get('max_tokens')) == 321


def test_the_key_travels_in_a_header_and_nowhere_else(model, server):
    model.generate(REQUEST)
    (received,) = server.received
    assert any(KEY in value for value in received.headers.values())
    assert KEY not in received.path
    assert KEY not in json.dumps(received.body)
    assert KEY not in repr(model.name)


@pytest.mark.parametrize(
    'misstep',
    [
        Misstep('status', 429, (('Retry-After', '7'),)),
        Misstep('status', 500),
        Misstep('status', 503, body='not even JSON'),
        Misstep('hang'),
        Misstep('closed'),
        Misstep('empty'),
        Misstep('length'),
    ],
    ids=lambda misstep: f'{misstep.kind}{misstep.status}',
)
def test_what_may_pass_is_told_from_what_does_not(model, server, misstep):
    server.missteps = deque([misstep])
    with pytest.raises(TransientModelError, match='some-model') as error:
        model.generate(REQUEST)
    if misstep.status == 429:
        assert error.value.retry_after_s == 7
    assert len(server.received) == 1, "patience is the client's, not the server's"


@pytest.mark.parametrize('status', [400, 401, 403, 404])
def test_what_does_not_pass_is_final(model, server, status):
    server.missteps = deque([Misstep('status', status)])
    with pytest.raises(LanguageModelError, match=f'status {status}') as error:
        model.generate(REQUEST)
    assert not isinstance(error.value, TransientModelError)
    assert ('check the key' in str(error.value)) is (status in (401, 403))


def test_a_refusal_is_final(model, server):
    server.missteps = deque([Misstep('refusal')])
    with pytest.raises(RefusalError):
        model.generate(REQUEST)


def test_a_server_that_repeats_the_key_does_not_get_it_printed(model, server, caplog):
    body = json.dumps({'error': {'message': f'wrong key {KEY}', 'code': 401, 'status': 'X'}})
    server.missteps = deque([Misstep('status', 401, body=body)])
    with caplog.at_level(logging.DEBUG), pytest.raises(LanguageModelError) as error:
        model.generate(REQUEST)
    assert KEY not in str(error.value)
    assert KEY not in caplog.text
    assert error.value.__cause__ is None


@pytest.mark.parametrize('kind', ['gemini', 'openai'])
def test_a_missing_key_names_its_variable(monkeypatch, kind):
    for name in ('GEMINI_API_KEY', 'GOOGLE_API_KEY', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LanguageModelError, match=f'{kind.upper()}_API_KEY'):
        make_language_model(f'{kind}:m')


def test_a_local_server_needs_no_key(monkeypatch, server):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    make_language_model('openai:m', {'base_url': server.url}).generate(REQUEST)
    assert 'Authorization' not in server.received[0].headers


def test_wrong_names_and_options_are_named():
    assert language_model_names() == ['gemini', 'offline', 'openai']
    with pytest.raises(ConfigError, match='Did you mean "gemini"'):
        make_language_model('gemni:x')
    with pytest.raises(ConfigError, match='timeout'):
        make_language_model('openai:m', {'timeout': 3})
    with pytest.raises(ConfigError, match='name a model'):
        make_language_model('openai')
    with pytest.raises(LanguageModelError, match='is in the cache'):
        make_language_model('offline').generate(REQUEST)
