"""Whatever a server does ends one request with one error in time; the key goes nowhere else."""

import json
import logging
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from functools import cache

import pytest
from support.loopback_models import LoopbackModels, Misstep
from support.sizes import few
from support.waiting import wait_until

from osmabench_ros.errors import ConfigError, LanguageModelError, OsmabenchWarning
from osmabench_ros.language.client import (
    MAX_FAILED_REQUESTS,
    ModelClient,
    ResponseCache,
)
from osmabench_ros.language.model import (
    ModelRequest,
    RefusalError,
    TransientModelError,
    UnavailableError,
)
from osmabench_ros.language.settings import make_language_model

KEY = 'sk-secret-0123456789'
REQUEST = ModelRequest('What is this?', max_output_tokens=50)


@pytest.fixture(scope='module')
def shared():
    with LoopbackModels() as models, pytest.MonkeyPatch.context() as patch:
        patch.setenv('OPENAI_API_KEY', KEY)
        patch.setenv('GEMINI_API_KEY', KEY)
        yield models


@pytest.fixture
def server(shared):
    shared.missteps.clear()
    shared.received.clear()
    return shared


@pytest.fixture(params=['openai', 'gemini'])
def kind(request, shared):
    return request.param


@cache
def model_at(kind, url, timeout_s=10.0):
    return make_language_model(f'{kind}:m', {'base_url': url, 'timeout_s': timeout_s})


def failure(model, server, misstep):
    """Return the error of a request, which is a short line without the key; the next succeeds."""
    server.missteps = deque([misstep])
    with pytest.raises(LanguageModelError) as reported:
        model.generate(REQUEST)
    error = reported.value
    assert len(server.received) == 1, 'to ask again is up to the client'
    assert KEY not in str(error) + error.reason
    assert len(str(error)) < 1000
    assert str(error).isprintable()
    assert model.generate(REQUEST).text
    return error


def sent(body, *headers, length=True):
    data = body.encode() if isinstance(body, str) else body
    lines = ['HTTP/1.1 200 OK', 'Content-Type: application/json', *headers]
    lines += [f'Content-Length: {len(data)}'] if length else []
    return Misstep('raw', raw='\r\n'.join([*lines, '', '']).encode() + data)


def reply(text='"fine"', usage='null'):
    """Return a reply in both APIs."""
    return (
        f'{{"choices": [{{"message": {{"content": {text}}}, "finish_reason": "stop"}}], '
        f'"usage": {usage}, "candidates": [{{"content": {{"role": "model", "parts": '
        f'[{{"text": {text}}}]}}, "finishReason": "STOP"}}], "usageMetadata": {usage}}}'
    )


def status(number, *, headers=(), **error):
    return Misstep('status', number, headers, json.dumps({'error': {'message': 'no', **error}}))


DEEP = '[' * 100_000 + ']' * 100_000
PASSING = {
    'a closed connection': (Misstep('closed'), 'no reply from'),
    'noise': (Misstep('raw', raw=b'\x16\x03\x01\x02' * 20), 'no reply from'),
    'less than it says': (sent('{}', 'Content-Length: 5000', length=False), 'no reply from'),
    'a bad packing': (sent('{}', 'Content-Encoding: gzip'), 'malformed'),
    'nothing': (sent(''), 'malformed'),
    'a cut reply': (sent('{"choices": [{"message": {"content": "fi'), 'malformed'),
    'a list': (sent('[]'), 'malformed'),
    'an error in 200': (sent('{"error": {"message": "out of memory"}}'), 'malformed'),
    'a deep reply': (sent(DEEP), 'malformed'),
    'half of a character': (sent(reply('"\\ud800"')), 'malformed'),
    'a number for a text': (sent(reply('5')), 'malformed'),
    'an empty text': (sent(reply('""')), 'empty reply'),
    'an empty reply': (Misstep('empty'), 'malformed'),
    'infinite tokens': (
        sent(reply(usage='{"prompt_tokens": 1e999, "promptTokenCount": 1e999}')), 'malformed'
    ),
    'a reply without end': (Misstep('length'), 'cut off'),
    'a full server': (status(429), '429 Too Many Requests from http://127'),
    'a broken server': (Misstep('status', 500, body=f'{KEY} \x1b[31m'), '500 Internal Server'),
    'a key for a reason': (
        Misstep('raw', raw=f'HTTP/1.1 500 {KEY}\r\n\r\n'.encode()), '500 *** from http://127'
    ),
    'a busy server': (Misstep('status', 503, body='not even JSON'), '503 Service Unavailable'),
}  # fmt: skip


@pytest.mark.parametrize('name', PASSING)
def test_an_error_that_may_pass_says_what_came(kind, server, name):
    misstep, reason = PASSING[name]
    error = failure(model_at(kind, server.url), server, misstep)
    assert isinstance(error, TransientModelError)
    assert reason in error.reason


OK = b'HTTP/1.1 200 OK\r\n'
SLOW = {
    'never': Misstep('hang'),
    'headers': Misstep('raw', raw=OK, again=b'X: y\r\n', interval_s=0.02),
    'the body': Misstep(
        'raw', raw=OK + b'Content-Length: 100000\r\n\r\n', again=b' ', interval_s=0.02
    ),
}


@pytest.mark.parametrize('name', SLOW)
def test_a_reply_has_a_limited_time_to_its_last_byte(kind, server, name):
    start_s = time.monotonic()
    error = failure(model_at(kind, server.url, 1.0), server, SLOW[name])
    assert f'no reply from {server.url} within 1 s' in str(error)
    assert 1.0 <= time.monotonic() - start_s < 5.0


FINAL = {
    'a wrong request': (status(400), LanguageModelError, 'status 400: no'),
    'a wrong key': (status(401), UnavailableError, 'check the key'),
    'a forbidden model': (status(403), UnavailableError, 'check the key'),
    'an unknown model': (status(404), UnavailableError, 'correct the model'),
    "Google's wrong key": (
        status(400, details=[{'reason': 'API_KEY_INVALID'}]), UnavailableError, 'check the key'
    ),
    'no credit': (status(429, code='insufficient_quota'), UnavailableError, 'used up'),
    'no quota for today': (
        status(429, details=[{'violations': [{'quotaId': 'RequestsPerDay'}]}]),
        UnavailableError, 'used up',
    ),
    'a redirect to nowhere': (status(302), LanguageModelError, 'status 302'),
    'a refusal': (Misstep('refusal'), RefusalError, 'declined'),
}  # fmt: skip


@pytest.mark.parametrize('name', FINAL)
def test_an_error_that_does_not_pass_says_what_to_do(kind, server, name):
    misstep, expected, words = FINAL[name]
    error = failure(model_at(kind, server.url), server, misstep)
    assert type(error) is expected
    assert words in str(error)


WAITS = {
    'seconds': (status(429, headers=(('Retry-After', '7'),)), 7.0),
    "Google's": (status(429, details=[{'retryDelay': '26.5s'}]), 26.5),
    **{
        value: (status(503, headers=(('Retry-After', value),)), None)
        for value in ('soon', '-5', '1e999', 'Fri, 31 Dec 2038 23:59:59 GMT')
    },
}


@pytest.mark.parametrize('name', WAITS)
def test_a_server_may_say_when_to_ask_again(kind, server, name):
    misstep, expected = WAITS[name]
    assert failure(model_at(kind, server.url), server, misstep).retry_after_s == expected


@pytest.mark.parametrize('number', [301, 302, 303, 307, 308])
def test_a_redirect_takes_neither_key_nor_prompt_to_another_host(kind, server, number):
    with LoopbackModels() as other:
        location = f'{other.url}/x?key={KEY}'
        misstep = Misstep('status', number, (('Location', location),))
        error = failure(model_at(kind, server.url), server, misstep)
        assert not other.received
    assert not isinstance(error, TransientModelError)
    assert f'{server.url} redirects to {other.url}/x; redirects are not followed' in str(error)


def test_a_refused_connection_is_an_error_at_once_and_for_all(kind, server, tmp_path):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        url = f'http://127.0.0.1:{free.getsockname()[1]}'
        client = ModelClient(model_at(kind, url), cache=ResponseCache(tmp_path), concurrency=1)
        start_s = time.monotonic()
        with pytest.warns(UserWarning, match=f'nothing answers at {url}') as shown:
            outcomes = client.ask_all([REQUEST] * 5, str)
    assert time.monotonic() - start_s < 5.0
    assert {outcome.failure for outcome in outcomes} == {f'connection refused by {url}'}
    assert len(shown) == 1


@pytest.mark.parametrize(
    'misstep', [Misstep('status', 500), Misstep('empty'), sent(reply('"no JSON"'))],
    ids=['error', 'nothing', 'text'],
)  # fmt: skip
def test_a_server_that_never_gives_a_usable_reply_is_left_after_ten_requests(
    server, tmp_path, misstep
):
    client = ModelClient(
        model_at('openai', server.url),
        cache=ResponseCache(tmp_path),
        attempts=6,
        first_wait_s=0.01,
        concurrency=2,
    )
    server.always = misstep
    reports = []
    try:
        with pytest.warns(OsmabenchWarning):
            outcomes = client.ask_all(
                [ModelRequest(f'{n}?') for n in range(50)],
                json.loads,
                progress=lambda text, fraction: reports.append((text, fraction)),
            )
        asked = len(server.received)
        with pytest.raises(LanguageModelError, match='not asked any more'):
            client.ask(REQUEST, json.loads)
    finally:
        server.always = None
    assert MAX_FAILED_REQUESTS <= asked <= MAX_FAILED_REQUESTS + 2
    assert all(outcome.failure for outcome in outcomes)
    assert reports[-1] == ('replies: 0 of 50, 50 failed', 0.0)


def test_a_server_that_replied_once_is_asked_again(server, tmp_path):
    client = ModelClient(
        model_at('openai', server.url), cache=ResponseCache(tmp_path),
        attempts=MAX_FAILED_REQUESTS + 2, first_wait_s=0.001,
    )  # fmt: skip
    assert client.ask(REQUEST, str)
    server.missteps = deque([Misstep('status', 500)] * (MAX_FAILED_REQUESTS + 1))
    with pytest.warns(OsmabenchWarning):
        assert client.ask(ModelRequest('And this?'), str)


def test_a_server_without_tls_is_named(kind, server):
    url = server.url.replace('http:', 'https:')
    with pytest.raises(TransientModelError, match=f'cannot be reached at {url}'):
        model_at(kind, url).generate(REQUEST)


def test_a_key_that_a_server_repeats_reaches_neither_reply_nor_cache_nor_log(
    kind, server, tmp_path, caplog
):
    client = ModelClient(model_at(kind, server.url), cache=ResponseCache(tmp_path), attempts=1)
    spelled = KEY.replace('s', r'\\u0073').replace('-', r'\\x2D', 1)
    answers = [
        sent(reply(f'"the key is {KEY}"')),
        sent(reply(f'"the key is {spelled}"')),
        Misstep('status', 401, body=f'"{KEY}"'),
    ]
    with caplog.at_level(logging.DEBUG):
        server.missteps = deque(answers)
        assert client.ask(REQUEST, str) == 'the key is ***'
        assert client.ask(ModelRequest('Once more?'), str) == 'the key is ***'
        with pytest.raises(LanguageModelError, match='401') as reported:
            client.ask(ModelRequest('And this?'), str)
    kept = ''.join(path.read_text() for path in tmp_path.rglob('*.json'))
    assert 'the key is ***' in kept
    assert KEY not in kept + caplog.text + str(reported.value)


@pytest.mark.parametrize('key', ['e', 'none', 'EMPTY', 'ollama'])
def test_a_word_that_stands_in_for_a_key_stays_in_replies(server, monkeypatch, key):
    monkeypatch.setenv('OPENAI_API_KEY', key)
    model = make_language_model('openai:m', {'base_url': server.url})
    server.missteps = deque([sent(reply(f'"{key}"'))])
    assert model.generate(REQUEST).text == key


@pytest.mark.parametrize(
    'url', ['ftp://h/v1', 'h:80', 'http://', '/v1', 'http://[::1', 'http://h:99999999']
)
def test_a_malformed_address_is_named_before_anything_is_sent(kind, url):
    with pytest.raises(ConfigError, match='base_url'):
        make_language_model(f'{kind}:m', {'base_url': url})


def test_a_third_party_model_may_raise_any_error(tmp_path):
    class Odd:
        name, server = 'odd/m', 'nowhere'

        def generate(self, request):
            return {}[request.prompt]

    cache = ResponseCache(tmp_path)
    client = ModelClient(Odd(), cache=cache, attempts=1)
    with pytest.warns(UserWarning, match='KeyError'):
        (outcome,) = client.ask_all([REQUEST], str)
    assert outcome.failure == 'malformed replies from nowhere'


PROGRAM = """
import json, sys
from pathlib import Path
from osmabench_ros.language.client import ModelClient, ResponseCache
from osmabench_ros.language.model import ModelRequest
from osmabench_ros.language.settings import make_language_model
kind, url, folder, number = sys.argv[1:]
model = make_language_model(f'{kind}:m', {'base_url': url})
client = ModelClient(model, cache=ResponseCache(Path(folder)), concurrency=2)
requests = [ModelRequest(f'Prompt {i}') for i in range(int(number))]
if number == '1':
    client.ask(requests[0], str)
print(json.dumps([outcome.value for outcome in client.ask_all(requests, str)]))
"""
PATIENT = Misstep('status', 503, (('Retry-After', '60'),))


@pytest.mark.parametrize('number', few(['1', '3'], '1'))
@pytest.mark.parametrize('misstep', [Misstep('hang'), PATIENT], ids=['request', 'wait'])
def test_ctrl_c_ends_a_request_and_a_wait_within_seconds(kind, server, misstep, number, tmp_path):
    server.missteps = deque([misstep] * 3)
    command = [sys.executable, '-c', PROGRAM, kind, server.url, str(tmp_path), number]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: server.received)
        if misstep is PATIENT:
            assert 'asked again in 60 s' in process.stderr.readline()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        start_s = time.monotonic()
        process.communicate(timeout=60)
        took_s = time.monotonic() - start_s
    assert process.returncode != 0
    # 2 s where nothing else runs; the request or the wait would take a minute or two.
    assert took_s < 15.0
    print(f'ended {took_s:.2f} s after the signal')


def test_a_client_that_is_killed_loses_nothing_that_was_answered(tmp_path, monkeypatch):
    def slow(prompt):
        time.sleep(0.05)
        return prompt

    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    with LoopbackModels(reply=slow) as server:
        command = [sys.executable, '-c', PROGRAM, 'openai', server.url, str(tmp_path), '20']
        with subprocess.Popen(command) as first:
            wait_until(lambda: len(server.received) >= 6, step=lambda: time.sleep(0.01))
            first.kill()
        time.sleep(0.3)
        asked, kept = len(server.received), len(list(tmp_path.rglob('*.json')))
        assert 0 < kept <= asked < 20
        second = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        assert json.loads(second.stdout) == [f'Prompt {i}' for i in range(20)]
        assert len(server.received) - asked == 20 - kept
        assert asked - kept <= 2, 'at most what was under way is asked again'
