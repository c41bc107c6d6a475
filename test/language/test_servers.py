"""Both APIs over real HTTP: requests and replies."""

import base64
import json
from collections import deque

import pytest
from support.loopback_models import LoopbackModels, Misstep

from osmabench_ros.base.configuration import LANGUAGE_MODELS, extension_names
from osmabench_ros.errors import ConfigError, LanguageModelError
from osmabench_ros.language.model import ImagePart, ModelRequest, Usage
from osmabench_ros.language.settings import make_language_model

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


def test_a_request_is_sent_whole_and_its_reply_comes_back_with_tokens(model, server):
    reply = model.generate(REQUEST)
    assert json.loads(reply.text) == {'echo': len(REQUEST.prompt)}
    assert reply.usage == Usage(11, 7)
    (received,) = server.received
    sent = json.dumps(received.body)
    assert received.prompt == REQUEST.prompt
    assert 'some-model' in received.path + sent
    for piece in (REQUEST.system, base64.b64encode(b'\x89PNG...').decode(), 'image/png', 'echo'):
        assert piece in sent, piece
    config = received.body.get('generationConfig', received.body)
    assert (config['temperature'], config['seed']) == (0.25, 5)
    assert config.get('maxOutputTokens', config.get('max_tokens')) == 321
    # The key travels in a header, and nowhere else.
    assert any(KEY in value for value in received.headers.values())
    assert KEY not in received.path + sent + repr(model.name)


def _unsupported(parameter):
    error = {'message': 'unsupported', 'param': parameter, 'code': 'unsupported_parameter'}
    return Misstep('status', 400, body=json.dumps({'error': error}))


def test_parameters_that_a_model_does_not_take_are_renamed_or_left_out(server, monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    model = make_language_model('openai:thinker', {'base_url': server.url})
    server.missteps = deque([_unsupported('max_tokens'), _unsupported('temperature')])
    assert model.generate(REQUEST).text
    watched = {'max_tokens', 'max_completion_tokens', 'temperature'}
    assert [watched & set(received.body) for received in server.received] == [
        {'max_tokens', 'temperature'}, {'max_completion_tokens', 'temperature'},
        {'max_completion_tokens'},
    ]  # fmt: skip
    model.generate(REQUEST)
    assert len(server.received) == 4, 'it is not tried again'
    server.missteps = deque([_unsupported('max_tokens')])
    with pytest.raises(LanguageModelError, match='status 400'):
        model.generate(REQUEST)
    server.missteps = deque([_unsupported('messages')])
    with pytest.raises(LanguageModelError, match='status 400'):
        model.generate(REQUEST)


@pytest.mark.parametrize('kind', ['gemini', 'openai'])
def test_a_missing_key_names_its_variable(monkeypatch, kind):
    for name in ('GEMINI_API_KEY', 'GOOGLE_API_KEY', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LanguageModelError, match=f'{kind.upper()}_API_KEY'):
        make_language_model(f'{kind}:m')


def test_a_local_server_needs_no_key(monkeypatch, server):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    make_language_model('openai:m', {'base_url': server.url}).generate(REQUEST)
    assert 'Bearer none' in server.received[0].headers.values()


def test_wrong_names_and_options_are_named():
    assert extension_names(LANGUAGE_MODELS) == ['gemini', 'offline', 'openai']
    with pytest.raises(ConfigError, match='Did you mean "gemini"'):
        make_language_model('gemni:x')
    with pytest.raises(ConfigError, match='timeout'):
        make_language_model('openai:m', {'timeout': 3})
    with pytest.raises(ConfigError, match='name a model'):
        make_language_model('openai')
    with pytest.raises(LanguageModelError, match='is in the cache'):
        make_language_model('offline').generate(REQUEST)
