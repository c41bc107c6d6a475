"""Both APIs over real HTTP: what goes out, what comes back, what goes wrong."""

import base64
import json
import logging
from collections import deque
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from support.loopback_models import LoopbackModels, Misstep

from osmabench_ros.errors import ConfigError, LanguageModelError
from osmabench_ros.language.model import (
    ImagePart,
    ModelRequest,
    RefusalError,
    TransientModelError,
    Usage,
)
from osmabench_ros.language.settings import language_model_names, make_language_model

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


def test_a_server_may_say_when_to_ask_again_in_its_own_way(model, server):
    info = {'@type': 'type.googleapis.com/google.rpc.RetryInfo', 'retryDelay': '26.5s'}
    body = json.dumps({'error': {'code': 429, 'message': 'slow down', 'details': [info]}})
    later = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=30))
    for misstep, expected in (
        (Misstep('status', 429, body=body), 26.5),
        (Misstep('status', 503, (('Retry-After', later),)), pytest.approx(30, abs=3)),
        (Misstep('status', 503, (('Retry-After', 'soon'),)), None),
    ):
        server.missteps = deque([misstep])
        with pytest.raises(TransientModelError) as error:
            model.generate(REQUEST)
        assert error.value.retry_after_s == expected


@pytest.mark.parametrize(
    'details',
    [
        {'code': 'insufficient_quota'},
        {'details': [{'violations': [{'quotaId': 'GenerateRequestsPerDayPerProject'}]}]},
    ],
)
def test_a_quota_that_is_used_up_is_final(model, server, details):
    body = json.dumps({'error': {'message': 'no more', **details}})
    server.missteps = deque([Misstep('status', 429, body=body)])
    with pytest.raises(LanguageModelError, match='used up') as error:
        model.generate(REQUEST)
    assert not isinstance(error.value, TransientModelError)


def test_a_wrong_key_that_comes_as_a_bad_request_is_told_as_such(model, server):
    details = [{'reason': 'API_KEY_INVALID', 'domain': 'googleapis.com'}]
    body = json.dumps({'error': {'code': 400, 'message': 'not valid', 'details': details}})
    server.missteps = deque([Misstep('status', 400, body=body)])
    with pytest.raises(LanguageModelError, match='check the key'):
        model.generate(REQUEST)


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


def test_a_password_of_netrc_does_not_take_the_place_of_the_key(server, monkeypatch, tmp_path):
    netrc = tmp_path / 'netrc'
    netrc.write_text('machine 127.0.0.1 login someone password something\n')
    monkeypatch.setenv('NETRC', str(netrc))
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    make_language_model('openai:m', {'base_url': server.url}).generate(REQUEST)
    assert server.received[0].headers['Authorization'] == f'Bearer {KEY}'


@pytest.mark.parametrize(
    ('reply', 'error'),
    [
        ({'choices': [{'message': {'content': None}}], 'usage': None}, 'empty'),
        ({'choices': [{'message': {'content': ''}, 'finish_reason': 'length'}]}, 'cut off'),
    ],
)
def test_odd_replies_of_compatible_servers_may_pass(server, monkeypatch, reply, error):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    model = make_language_model('openai:m', {'base_url': server.url})
    server.missteps = deque([Misstep('status', 200, body=json.dumps(reply))])
    with pytest.raises(TransientModelError, match=error):
        model.generate(REQUEST)


def test_a_content_in_parts_and_tokens_that_are_not_counted(server, monkeypatch):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    model = make_language_model('openai:m', {'base_url': server.url})
    content = [{'type': 'text', 'text': '{"echo"'}, {'type': 'text', 'text': ': 1}'}]
    reply = {'choices': [{'message': {'content': content}}], 'usage': {'prompt_tokens': None}}
    server.missteps = deque([Misstep('status', 200, body=json.dumps(reply))])
    found = model.generate(REQUEST)
    assert (found.text, found.usage) == ('{"echo": 1}', Usage(0, 0))


@pytest.mark.parametrize('status', [400, 401, 403, 404])
def test_what_does_not_pass_is_final(model, server, status):
    server.missteps = deque([Misstep('status', status)])
    with pytest.raises(LanguageModelError, match=f'status {status}') as error:
        model.generate(REQUEST)
    assert not isinstance(error.value, TransientModelError)
    assert ('check the key' in str(error.value)) is (status in (401, 403))


def test_a_refusal_is_final(model, server):
    server.missteps = deque([Misstep('refusal')])
    with pytest.raises(RefusalError, match='declined: (I would rather not|SAFETY)'):
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


@pytest.mark.parametrize('key', ['e', 'none', 'EMPTY', 'ollama'])
def test_a_word_that_servers_of_ones_own_want_for_a_key_is_not_struck_out(
    server, monkeypatch, key
):
    monkeypatch.setenv('OPENAI_API_KEY', key)
    model = make_language_model('openai:m', {'base_url': server.url})
    server.reply = lambda prompt: f'{{"echo": "{key}"}}'
    assert json.loads(model.generate(REQUEST).text) == {'echo': key}
