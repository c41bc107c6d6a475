"""Whatever a server sends is a reply, or a bad reply of one request; nothing goes elsewhere."""

import gzip
import json
import math
import zlib
from collections import deque
from functools import cache

import pytest
from support.loopback_models import LoopbackModels, Misstep

from osmabench_ros.errors import ConfigError, LanguageModelError
from osmabench_ros.language.cache import ResponseCache
from osmabench_ros.language.client import ModelClient, RetryPolicy
from osmabench_ros.language.model import ModelRequest, TransientModelError
from osmabench_ros.language.settings import make_language_model

KEY = 'sk-secret-0123456789'
REQUEST = ModelRequest('What is this?', max_output_tokens=50)
KINDS = ('openai', 'gemini')


@pytest.fixture(scope='module')
def shared():
    """One server and, as they take long to make, one model of each kind and bounds."""
    with LoopbackModels() as models, pytest.MonkeyPatch.context() as patch:
        patch.setenv('OPENAI_API_KEY', KEY)
        patch.setenv('GEMINI_API_KEY', KEY)
        yield models


@pytest.fixture
def server(shared):
    shared.missteps.clear()
    shared.received.clear()
    return shared


@pytest.fixture(params=KINDS)
def kind(request, shared):
    return request.param


@cache
def model_at(kind, url, timeout_s):
    options = {'base_url': url, 'timeout_s': timeout_s, 'max_reply_mib': 0.1}
    return make_language_model(f'{kind}:m', options)


def model_of(kind, server, timeout_s=10.0):
    return model_at(kind, server.url, timeout_s)


SHAPES = {
    'openai': """{"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}],
        "usage": USAGE MORE}""",
    'gemini': """{"candidates": [{"content": {"role": "model", "parts": [{"text": TEXT}]},
        "finishReason": "STOP"}], "usageMetadata": USAGE MORE}""",
}


def good(kind, *, usage='null', text='"fine"', more=''):
    shape = SHAPES[kind].replace('TEXT', text)
    return shape.replace('USAGE', usage).replace('MORE', more)


def http(body, *headers, status='200 OK', length=True):
    data = body.encode() if isinstance(body, str) else body
    lines = [f'HTTP/1.1 {status}', *headers]
    lines += [f'Content-Length: {len(data)}'] if length else []
    return '\r\n'.join([*lines, '', '']).encode() + data


def fails(kind, server, misstep, reason, **bounds):
    """Expect a bad reply of this request, and a good one of the next."""
    server.missteps = deque([misstep])
    model = model_of(kind, server, **bounds)
    with pytest.raises(TransientModelError) as error:
        model.generate(REQUEST)
    assert reason in error.value.reason
    assert len(str(error.value)) < 1000
    assert KEY not in str(error.value)
    assert str(error.value).isprintable()
    assert model.generate(REQUEST).text


def test_the_skeleton_of_the_bad_replies_is_a_good_one(kind, server):
    usage = '{"prompt_tokens": 3, "promptTokenCount": 3}'
    server.missteps = deque([Misstep('raw', raw=http(good(kind, usage=usage)))])
    reply = model_of(kind, server).generate(REQUEST)
    assert (reply.text, reply.usage.prompt_tokens) == ('fine', 3)


COUNTS = (
    'Infinity', '-Infinity', 'NaN', '1e999', '-5', '1.5', 'true', '"12"', '[]', '[7]', '{"a": 1}',
    '1' + '0' * 20, '1' + '0' * 5000,
)  # fmt: skip


@pytest.mark.parametrize('count', COUNTS, ids=lambda count: count[:12])
@pytest.mark.parametrize('name', ['prompt', 'output'])
def test_tokens_that_are_no_number_of_tokens_are_a_bad_reply(kind, server, count, name):
    key = {
        'openai': {'prompt': 'prompt_tokens', 'output': 'completion_tokens'},
        'gemini': {'prompt': 'promptTokenCount', 'output': 'candidatesTokenCount'},
    }[kind][name]
    body = good(kind, usage=f'{{"{key}": {count}}}')
    fails(kind, server, Misstep('raw', raw=http(body)), 'malformed replies from http://127')


@pytest.mark.parametrize('usage', ['[1, 2]', '"lots"', '12', 'true', '1e999'])
def test_a_usage_that_is_no_object_is_a_bad_reply(kind, server, usage):
    fails(kind, server, Misstep('raw', raw=http(good(kind, usage=usage))), 'malformed')


def nested(depth, opening='[', closing=']', core=''):
    return opening * depth + core + closing * depth


BODIES = {
    'nothing': '',
    'null': 'null',
    'number': '42',
    'list': '[]',
    'page': '<!DOCTYPE html><html><body>Welcome</body></html>',
    'object': '{}',
    'error in 200': '{"error": {"message": "out of memory", "code": 500}}',
    'cut off': '{"choices": [{"message": {"content": "fi',
    'not UTF-8': b'{"choices": "\xff\xfe\xfa"}',
    'UTF-16': '{"choices": []}'.encode('utf-16'),
    'lists 400 deep': nested(400),
    'lists 100000 deep': nested(40_000) + nested(10_000),
    'objects 400 deep': nested(400, '{"a":', '}', '1'),
    'objects 20000 deep': nested(15_000, '{"a":', '}', '1'),
    'no choice': '{"choices": [], "candidates": []}',
    'choices are an object': '{"choices": {"0": {"message": {}}}, "candidates": {"0": {}}}',
    'choices are a text': '{"choices": "abc", "candidates": "abc"}',
    'choices of lists': '{"choices": [[]], "candidates": [[]]}',
    'choices of null': '{"choices": [null], "candidates": [null]}',
    'message of null': '{"choices": [{"message": null}], "candidates": [{"content": null}]}',
    'message of pairs': '{"choices": [{"message": [["content", "x"]]}], "candidates": [7]}',
    'content of null': '{"choices": [{"message": {"content": null}}], "candidates": '
    '[{"content": {"parts": null}}]}',
    'content is a number': '{"choices": [{"message": {"content": 5}}], "candidates": '
    '[{"content": {"parts": [{"text": 5}]}}]}',
    'content is an object': '{"choices": [{"message": {"content": {"a": 1}}}], "candidates": '
    '[{"content": {"parts": {"text": "x"}}}]}',
    'content of odd parts': '{"choices": [{"message": {"content": [1, [2]]}}], "candidates": '
    '[{"content": {"parts": [1, [2]]}}]}',
}


@pytest.mark.parametrize('name', BODIES)
def test_a_body_that_is_no_reply_is_a_bad_reply(kind, server, name):
    fails(kind, server, Misstep('raw', raw=http(BODIES[name])), 'malformed')


FORGED = {
    'half a character': {'text': '"\\ud800"'},
    'a key twice': {'more': ', "usage": null, "usageMetadata": null'},
    'an infinite number': {'more': ', "x": 1e999'},
    'not a number': {'more': ', "x": [NaN]'},
    'deep beside it': {'more': ', "x": ' + nested(400)},
    'deeper beside it': {'more': ', "x": ' + nested(40_000)},
    '5000 digits beside it': {'more': ', "x": ' + '9' * 5000},
}


@pytest.mark.parametrize('name', FORGED)
def test_a_reply_with_something_odd_in_it_is_a_bad_reply(kind, server, name):
    fails(kind, server, Misstep('raw', raw=http(good(kind, **FORGED[name]))), 'malformed')


MIB = b'0' * 2**20
SENT = {
    'nothing': (b'', 'no reply from'),
    'noise': (b'\x16\x03\x01\x02\x00\x01\x00' * 20, 'no reply from'),
    'no status': (b'HTTP/1.1 abc\r\n\r\n', 'no reply from'),
    'a huge status': (b'HTTP/1.1 99999999999999999999 OK\r\n\r\n', 'no reply from'),
    'an endless status': (b'HTTP/1.1 200 ' + MIB + b'\r\n\r\n', 'no reply from'),
    'an endless header': (b'HTTP/1.1 200 OK\r\nX: ' + MIB + b'\r\n\r\n', 'no reply from'),
    'headers without end': (b'HTTP/1.1 200 OK\r\n' + b'X: y\r\n' * 999 + b'\r\n', 'no reply'),
    'less than it says': (http('{}', 'Content-Length: 5000', length=False), 'no reply from'),
    'two lengths': (http('{}', 'Content-Length: 5, 7', length=False), 'no reply from'),
    'a negative length': (http('{}', 'Content-Length: -7', length=False), 'malformed'),
    'a bad chunk': (
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n', 'no reply'
    ),
    'a chunk of no size': (
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n' + MIB, 'no reply from'
    ),
    'a chunk that is cut off': (
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n{}', 'no reply from'
    ),
    'more than is allowed': (http(MIB), 'a reply of more than 0.1 MiB'),
    'more than it says': (
        http(MIB, 'Content-Length: 99999999999', length=False), 'a reply of more than 0.1 MiB'
    ),
    'a chunk that is too large': (
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n' + MIB,
        'a reply of more than 0.1 MiB',
    ),
    'a bomb': (http(gzip.compress(20 * MIB), 'Content-Encoding: gzip'), 'more than 0.1 MiB'),
    'a bomb that fails': (
        http(gzip.compress(20 * MIB), 'Content-Encoding: gzip', status='503 No'), 'more than 0.1'
    ),
    'a bomb in a bomb': (
        http(gzip.compress(gzip.compress(MIB)), 'Content-Encoding: gzip, gzip'), 'no reply from'
    ),
    'nothing, packed for ever': (
        http(gzip.compress(b'')[:10] + b'\x00\x00\x00\xff\xff' * 60_000, 'Content-Encoding: gzip'),
        'more than 0.1',
    ),
    'another packing': (http('{}', 'Content-Encoding: zstd'), 'no reply from'),
    'deflate': (http(zlib.compress(b'{}'), 'Content-Encoding: deflate'), 'no reply from'),
    'a packing of nonsense': (http('{}', 'Content-Encoding: gzip'), 'no reply from'),
    'a packing that is cut off': (
        http(gzip.compress(b'{}' * 99)[:-9], 'Content-Encoding: gzip'), 'no reply from'
    ),
    'a key that it was sent': (
        http(f'{{"error": {{"message": "{KEY} \x1b[31m"}}}}', status='500 No'), '500 Internal'
    ),
}  # fmt: skip


@pytest.mark.parametrize('name', SENT)
def test_what_is_no_http_or_too_much_of_it_is_a_bad_reply(kind, server, name):
    raw, reason = SENT[name]
    fails(kind, server, Misstep('raw', raw=raw), reason)


@pytest.mark.parametrize('encoding', ['gzip', 'X-GZIP', 'identity'])
def test_a_reply_may_be_packed_as_was_offered(kind, server, encoding):
    body = good(kind).encode()
    packed = gzip.compress(body) if 'gzip' in encoding.lower() else body
    server.missteps = deque([Misstep('raw', raw=http(packed, f'Content-Encoding: {encoding}'))])
    assert model_of(kind, server).generate(REQUEST).text == 'fine'


OK = b'HTTP/1.1 200 OK\r\n'
SLOW = {
    'never': (b'', b''),
    'the status': (b'', b'H'),
    'a header': (OK + b'X: ', b'x'),
    'headers': (OK, b'X: y\r\n'),
    'early hints': (b'', b'HTTP/1.1 100 Continue\r\n\r\n'),
    'the body': (OK + b'Content-Length: 100000\r\n\r\n', b' '),
    'a body without end': (OK + b'\r\n' + good('openai').encode(), b' '),
    'chunks': (OK + b'Transfer-Encoding: chunked\r\n\r\n', b'1\r\n \r\n'),
    'the size of a chunk': (OK + b'Transfer-Encoding: chunked\r\n\r\n', b'0'),
    'trailers': (OK + b'Transfer-Encoding: chunked\r\n\r\n0\r\n', b'X: y\r\n'),
    'an error': (b'HTTP/1.1 500 No\r\n\r\n', b'x'),
}


@pytest.mark.parametrize('name', SLOW)
def test_a_reply_that_trickles_ends_when_its_time_is_up(kind, server, name):
    raw, again = SLOW[name]
    trickle = Misstep('raw', raw=raw, again=again, interval_s=0.02)
    misstep = trickle if again else Misstep('hang')
    fails(kind, server, misstep, 'within 1 s', timeout_s=1.0)


def test_a_server_that_speaks_no_tls_is_a_bad_reply(kind, server):
    model = model_at(kind, server.url.replace('http:', 'https:'), 10.0)
    with pytest.raises(TransientModelError, match='cannot be reached at https://127'):
        model.generate(REQUEST)


@pytest.mark.parametrize('status', [301, 302, 303, 307, 308])
@pytest.mark.parametrize('place', ['{url}/x?key=abc', '//{host}/x?key=abc', '{url}'])
def test_a_redirect_takes_neither_key_nor_prompt_to_another_host(kind, server, status, place):
    with LoopbackModels() as other:
        host = other.url.removeprefix('http://')
        location = place.format(url=other.url, host=host)
        server.missteps = deque([Misstep('status', status, (('Location', location),))])
        with pytest.raises(LanguageModelError, match='redirects are not followed') as error:
            model_of(kind, server).generate(REQUEST)
        assert not other.received
    assert not isinstance(error.value, TransientModelError)
    assert f'{server.url} redirects to http://{host};' in str(error.value)
    assert 'key=abc' not in str(error.value)


@pytest.mark.parametrize(
    'location', ['/elsewhere', 'http://[', 'file:///etc/passwd', 'x' * 5000, f'http://{KEY}@h/']
)
def test_no_redirect_is_followed_and_its_body_is_not_read(kind, server, location):
    packed = 'Content-Encoding: gzip'
    bomb = http(gzip.compress(20 * MIB), packed, f'Location: {location}', status='302 Found')
    server.missteps = deque([Misstep('raw', raw=bomb)])
    with pytest.raises(LanguageModelError, match='redirects are not followed') as error:
        model_of(kind, server).generate(REQUEST)
    assert len(server.received) == 1
    assert len(str(error.value)) < 1000
    assert KEY not in str(error.value)


WAITS = ('1e999', '-1e999', 'nan', '-5', '1e5', '9' * 5000, 'soon', '', 'Mon, 99 Foo 2020',
         'Fri, 31 Dec 9999 23:59:59 GMT', 'Mon, 01 Jan 0001 00:00:00 +2359',
         'Fri, 31 Dec 99999 23:59:59 GMT')  # fmt: skip


@pytest.mark.parametrize('wait', WAITS, ids=lambda wait: wait[:12])
def test_no_wait_that_a_server_asks_for_is_too_long(kind, server, tmp_path, wait):
    server.missteps = deque([Misstep('status', 503, (('Retry-After', wait),))])
    patience = RetryPolicy(attempts=2, first_wait_s=0.01, longest_wait_s=0.02)
    client = ModelClient(model_of(kind, server), cache=ResponseCache(tmp_path), patience=patience)
    assert client.ask(REQUEST, str)
    assert len(server.received) == 2


def test_a_bad_reply_ends_no_other_request_and_spoils_neither_accounts_nor_cache(
    kind, server, tmp_path
):
    bad = [
        http(good(kind, usage='{"prompt_tokens": 1e999, "promptTokenCount": 1e999}')),
        http(good(kind, text='"\\ud800"')),
        http(BODIES['lists 100000 deep']),
        b'\xff' * 100,
        b'',
    ]
    server.missteps = deque(Misstep('raw', raw=raw) for raw in bad)
    patience = RetryPolicy(attempts=1)
    cache = ResponseCache(tmp_path)
    client = ModelClient(model_of(kind, server), cache=cache, patience=patience, concurrency=1)
    requests = [ModelRequest(f'Prompt {i}') for i in range(len(bad) + 3)]
    outcomes = client.ask_all(requests, str)
    assert [bool(o.failure) for o in outcomes] == [True] * len(bad) + [False] * 3
    spent = client.ledger.spending
    assert (spent.prompt_tokens, spent.output_tokens) == (3 * 11, 3 * 7)
    assert math.isfinite(spent.cost)
    assert len(list(tmp_path.rglob('*.json'))) == 3


def test_a_foreign_model_may_raise_any_error(tmp_path):
    class Odd:
        name, server = 'odd/m', 'nowhere'

        def generate(self, request):
            return {}[request.prompt]

    client = ModelClient(Odd(), patience=RetryPolicy(attempts=1))
    (outcome,) = client.ask_all([REQUEST], str)
    assert outcome.failure == 'malformed replies from nowhere'


DAMAGED = {
    'empty': b'',
    'cut off': b'{"text": "x", "prompt_tok',
    'list': b'[]',
    'deep': nested(100_000).encode(),
    'deep object': nested(400, '{"text":', '}', '"x"').encode(),
    'infinite': b'{"text": "x", "prompt_tokens": 1e999, "output_tokens": 1}',
    'constant': b'{"text": "x", "prompt_tokens": Infinity, "output_tokens": 1}',
    'negative': b'{"text": "x", "prompt_tokens": -1, "output_tokens": 1}',
    'text': b'{"text": "x", "prompt_tokens": "1", "output_tokens": 1}',
    'huge': b'{"text": "x", "prompt_tokens": 1%s, "output_tokens": 1}' % (b'0' * 5000),
    'no text': b'{"prompt_tokens": 1, "output_tokens": 1}',
    'number for text': b'{"text": 5, "prompt_tokens": 1, "output_tokens": 1}',
    'half a character': b'{"text": "\\ud800", "prompt_tokens": 1, "output_tokens": 1}',
    'refusal of a list': b'{"text": "", "refusal": [1], "prompt_tokens": 1, "output_tokens": 1}',
    'not UTF-8': b'\xff\xfe\x00',
    'twice': b'{"text": "x", "text": "y", "prompt_tokens": 1, "output_tokens": 1}',
}


@pytest.mark.parametrize('name', DAMAGED)
def test_a_kept_reply_that_is_damaged_is_not_there(server, tmp_path, name):
    def ask():
        model = make_language_model('openai:m', {'base_url': server.url})
        return ModelClient(model, cache=ResponseCache(tmp_path)).ask(REQUEST, str)

    first = ask()
    (path,) = tmp_path.rglob('*.json')
    path.write_bytes(DAMAGED[name])
    assert ask() == ask() == first
    assert len(server.received) == 2
    assert json.loads(path.read_text())['text'] == first


def test_a_kept_reply_that_is_a_device_is_not_read_and_named(server, tmp_path):
    model = make_language_model('openai:m', {'base_url': server.url})
    client = ModelClient(model, cache=ResponseCache(tmp_path))
    client.ask(REQUEST, str)
    (path,) = tmp_path.rglob('*.json')
    path.unlink()
    path.symlink_to('/dev/zero')
    with pytest.raises(LanguageModelError, match=path.name):
        client.ask(REQUEST, str)


@pytest.mark.parametrize('url', ['ftp://h/v1', 'h:80', 'http://', '/v1', 'http://h:99999999'])
def test_an_address_that_is_none_is_named_before_anything_is_sent(kind, url):
    with pytest.raises(ConfigError, match='base_url'):
        make_language_model(f'{kind}:m', {'base_url': url})


@pytest.mark.parametrize('value', [0, -1, math.inf, math.nan, 1e9])
@pytest.mark.parametrize('option', ['timeout_s', 'max_reply_mib'])
def test_a_bound_that_is_none_is_named(kind, option, value):
    with pytest.raises(ConfigError, match=option):
        make_language_model(f'{kind}:m', {option: value})
