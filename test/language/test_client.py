"""Cache, patience, budget and concurrency over real HTTP."""

import base64
import json
import sys
import threading
import time
from collections import deque

import pytest
from support.loopback_models import LoopbackModels, Misstep

from osmabench_ros.base.configuration import LANGUAGE_MODELS, extension_names
from osmabench_ros.errors import (
    BudgetExceededError,
    ConfigError,
    IncompleteError,
    LanguageModelError,
)
from osmabench_ros.language.client import (
    Account,
    ModelClient,
    Outcome,
    ResponseCache,
    raise_if_incomplete,
)
from osmabench_ros.language.model import ImagePart, ModelRequest, RefusalError, Usage
from osmabench_ros.language.settings import ModelAccess, make_language_model

QUICK = {'attempts': 4, 'first_wait_s': 0.01, 'longest_wait_s': 0.2}
REQUESTS = [ModelRequest(f'Prompt {i}', max_output_tokens=100) for i in range(6)]


@pytest.fixture
def server():
    with LoopbackModels(reply=lambda prompt: json.dumps({'said': prompt})) as models:
        yield models


def client(server, tmp_path, timeout_s=20.0, **more):
    model = make_language_model('openai:m', {'base_url': server.url, 'timeout_s': timeout_s})
    return ModelClient(model, cache=ResponseCache(tmp_path), **QUICK, **more)


def said(text):
    return json.loads(text)['said']


def test_code_that_exits_while_it_answers_ends_the_requests_with_an_error(server, tmp_path):
    with pytest.raises(LanguageModelError, match=r'openai/m: its code asked to exit \(3\)'):
        client(server, tmp_path).ask_all(REQUESTS, lambda _: sys.exit(3))


def test_a_cached_reply_makes_no_request(server, tmp_path):
    first = client(server, tmp_path).ask(REQUESTS[0], said)
    again = client(server, tmp_path)
    assert again.ask(REQUESTS[0], said) == first == 'Prompt 0'
    assert len(server.received) == 1
    assert again.ledger.spending.cache_hits == 1
    assert again.ledger.spending.requests == 0


def test_the_cache_tells_apart_whatever_shapes_the_reply(server, tmp_path):
    asked = client(server, tmp_path)
    variants = [
        ModelRequest('p'),
        ModelRequest('p', 'system'),
        ModelRequest('p', images=(ImagePart(b'a'),)),
        ModelRequest('p', images=(ImagePart(b'b'),)),
        ModelRequest('p', schema={'type': 'object'}),
        ModelRequest('p', temperature=0.5),
        ModelRequest('p', seed=1),
    ]
    for request in variants:
        asked.ask(request, said)
    assert len(server.received) == len(variants)
    assert len({request.cache_key('m', 'http://a') for request in variants}) == len(variants)
    others = [('m', 'http://a'), ('n', 'http://a'), ('m', 'http://b')]
    assert len({ModelRequest('p').cache_key(*other) for other in others}) == len(others)


def test_offline_serves_the_replies_of_the_server_that_is_named(server, tmp_path, monkeypatch):
    client(server, tmp_path).ask(REQUESTS[0], said)
    stands_for = ModelAccess(base_url=server.url, cache=tmp_path).client_of('offline:openai/m')
    assert stands_for.ask(REQUESTS[0], said) == 'Prompt 0'
    monkeypatch.delenv('OPENAI_BASE_URL', raising=False)
    with pytest.raises(LanguageModelError, match='no reply of openai/m at https://api.openai'):
        ModelAccess(cache=tmp_path).client_of('offline:openai/m').ask(REQUESTS[0], said)
    monkeypatch.setenv('OPENAI_BASE_URL', server.url)
    by_environment = ModelAccess(cache=tmp_path).client_of('offline:openai/m')
    assert by_environment.ask(REQUESTS[0], said) == 'Prompt 0'


def test_secrets_of_an_address_are_no_part_of_it():
    model = make_language_model('openai:m', {'base_url': 'http://me:sk-secret@Host:80/v1/?key=k'})
    assert model.server == 'http://host:80/v1'


def test_what_passes_is_waited_out(server, tmp_path):
    server.missteps = deque(
        [Misstep('status', 429, (('Retry-After', '0.05'),)), Misstep('hang'), Misstep('truncated')]
    )
    assert client(server, tmp_path, timeout_s=1.0).ask(REQUESTS[0], said) == 'Prompt 0'
    assert len(server.received) == 4


def test_patience_ends_and_the_last_failure_is_told(server, tmp_path):
    server.missteps = deque([Misstep('status', 503)] * 9)
    with pytest.raises(LanguageModelError, match='status 503'):
        client(server, tmp_path).ask(REQUESTS[0], said)
    assert len(server.received) == QUICK['attempts']


def test_a_refusal_is_kept_and_a_bad_request_is_not_repeated(server, tmp_path):
    server.missteps = deque([Misstep('refusal'), Misstep('status', 400)])
    for _ in range(2):
        with pytest.raises(RefusalError, match='rather not'):
            client(server, tmp_path).ask(REQUESTS[0], said)
    with pytest.raises(LanguageModelError, match='HTTP status 400'):
        client(server, tmp_path).ask(REQUESTS[1], said)
    assert len(server.received) == 2


def test_a_key_that_is_not_taken_is_tried_no_further_and_the_cache_still_serves(server, tmp_path):
    client(server, tmp_path).ask(REQUESTS[5], said)
    server.received.clear()
    server.always = Misstep('status', 401)
    outcomes = client(server, tmp_path, concurrency=1).ask_all(REQUESTS, said)
    assert len(server.received) == 1
    assert {o.failure.split(' from ')[0] for o in outcomes[:5]} == {'401 Unauthorized'}
    assert outcomes[5].value == 'Prompt 5'


def test_a_bad_reply_is_never_kept_and_asked_for_with_another_seed(server, tmp_path):
    server.missteps = deque([Misstep('truncated')])
    client(server, tmp_path).ask(REQUESTS[0], said)
    assert [r.body['seed'] for r in server.received] == [0, 1]
    assert client(server, tmp_path).ask(REQUESTS[0], said) == 'Prompt 0'
    assert len(server.received) == 2
    (path,) = tmp_path.rglob('*.json')
    path.write_text(path.read_text()[:20])  # cut off
    assert client(server, tmp_path).ask(REQUESTS[0], said) == 'Prompt 0'
    assert len(server.received) == 3


def test_no_more_requests_are_under_way_than_allowed(server, tmp_path):
    def slow(prompt):
        time.sleep(0.05)
        return json.dumps({'said': prompt})

    server.reply = slow
    many = [ModelRequest(f'Prompt {i}') for i in range(12)]
    client(server, tmp_path, concurrency=3).ask_all(many, said)
    assert 1 < server.most_at_once <= 3


def test_a_budget_of_tokens_stops_cleanly_and_a_higher_one_goes_on(server, tmp_path):
    tight = client(server, tmp_path, ledger=Account(max_tokens=180), concurrency=1)
    outcomes = tight.ask_all(REQUESTS, said)
    answered = [o for o in outcomes if o.value is not None]
    assert 0 < len(answered) < len(REQUESTS)
    stopped = [o.error for o in outcomes if o.value is None]
    assert all(isinstance(error, BudgetExceededError) for error in stopped)
    assert {o.failure for o in outcomes} == {'', 'the budget of 180 tokens is used up'}
    spent = tight.ledger.spending
    assert spent.prompt_tokens + spent.output_tokens <= 180
    before = len(server.received)
    outcomes = client(server, tmp_path).ask_all(REQUESTS, said)
    assert all(o.value for o in outcomes)
    assert len(server.received) == before + len(REQUESTS) - len(answered)


def test_a_budget_of_money_is_never_overrun_by_requests_side_by_side(server, tmp_path):
    ledger = Account(1000.0, 1000.0, max_cost=0.35)
    asked = client(server, tmp_path, ledger=ledger, concurrency=6)
    asked.ask_all(REQUESTS, said)
    assert 0 < ledger.spending.cost <= 0.35
    assert ledger.spending.cost == pytest.approx(18 * len(server.received) / 1000)


def test_an_estimate_sends_no_request_and_counts_the_cache(server, tmp_path):
    ledger = Account(1.0, 2.0)
    client(server, tmp_path).ask(REQUESTS[0], said)
    dry = client(server, tmp_path, ledger=ledger, is_dry=True)
    assert [outcome.value for outcome in dry.ask_all(REQUESTS, said)] == ['Prompt 0', *[None] * 5]
    estimate = ledger.spending
    assert len(server.received) == 1
    assert (estimate.requests, estimate.cache_hits) == (5, 1)
    assert estimate.prompt_tokens == 5 * 2
    assert estimate.output_tokens == 500
    assert estimate.cost == pytest.approx((10 * 1.0 + 500 * 2.0) / 1e6)


def test_an_interrupt_sends_nothing_more_and_keeps_what_was_answered(server, tmp_path):
    many = [ModelRequest(f'Prompt {i}') for i in range(40)]
    seen = threading.Event()

    def interrupt(text, fraction):
        seen.set()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client(server, tmp_path, concurrency=2).ask_all(many, said, progress=interrupt)
    assert seen.is_set()
    assert len(server.received) <= 4  # two that were under way, and their successors
    sent = len(server.received)
    client(server, tmp_path).ask_all(many, said)
    assert len(server.received) <= len(many) + 2
    assert len(server.received) - sent < len(many)


def test_a_cache_that_cannot_be_written_is_named(server, tmp_path):
    blocker = tmp_path / 'file'
    blocker.touch()
    with pytest.raises(LanguageModelError, match='file'):
        client(server, blocker).ask(REQUESTS[0], said)


def test_no_key_and_no_prompt_reach_the_cache(server, tmp_path, monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', 'sk-secret')
    server.reply = lambda prompt: json.dumps({'said': 'yes'})
    client(server, tmp_path).ask(ModelRequest('a very private prompt'), said)
    text = ''.join(p.read_text() + p.name for p in tmp_path.rglob('*.json'))
    assert 'sk-secret' not in text
    assert 'private' not in text


def test_what_is_missing_is_counted_by_reason_and_refusals_are_not_missing():
    fine, refused = Outcome(value=1), Outcome(error=RefusalError('no'))
    raise_if_incomplete([fine.failure, refused.failure], 'questions')
    down = Outcome(error=LanguageModelError('long story', reason='down')).failure
    reported = r'3 of 4 questions unanswered: down \(2\), up \(1\); the replies so far are kept'
    with pytest.raises(IncompleteError, match=reported):
        raise_if_incomplete([down, 'up', '', down], 'questions')


def test_equal_requests_side_by_side_may_keep_their_replies_at_once(server, tmp_path):
    for number in range(5):
        equal = [ModelRequest(f'Prompt {number}')] * 8
        outcomes = client(server, tmp_path, concurrency=8).ask_all(equal, said)
        assert [o.failure for o in outcomes] == [''] * len(equal)


KEY = 'sk-secret-0123456789'
SCHEMA = {'type': 'object', 'properties': {'echo': {'type': 'integer'}}, 'required': ['echo']}
REQUEST = ModelRequest(
    'What is this?', 'You look at images.', (ImagePart(b'\x89PNG...'),), SCHEMA, 0.25, 321, 5
)


@pytest.fixture
def echoing():
    with LoopbackModels() as models:
        yield models


@pytest.fixture(params=['openai', 'gemini'])
def model(request, echoing, monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    monkeypatch.setenv('GEMINI_API_KEY', KEY)
    url = echoing.url + ('/v1' if request.param == 'openai' else '')
    return make_language_model(f'{request.param}:some-model', {'base_url': url, 'timeout_s': 2.0})


def test_a_request_is_sent_whole_and_its_reply_comes_back_with_tokens(model, echoing):
    reply = model.generate(REQUEST)
    assert json.loads(reply.text) == {'echo': len(REQUEST.prompt)}
    assert reply.usage == Usage(11, 7)
    (received,) = echoing.received
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


def test_parameters_that_a_model_does_not_take_are_renamed_or_left_out(echoing, monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    model = make_language_model('openai:thinker', {'base_url': echoing.url})
    echoing.missteps = deque([_unsupported('max_tokens'), _unsupported('temperature')])
    assert model.generate(REQUEST).text
    watched = {'max_tokens', 'max_completion_tokens', 'temperature'}
    assert [watched & set(received.body) for received in echoing.received] == [
        {'max_tokens', 'temperature'}, {'max_completion_tokens', 'temperature'},
        {'max_completion_tokens'},
    ]  # fmt: skip
    model.generate(REQUEST)
    assert len(echoing.received) == 4, 'it is not tried again'
    echoing.missteps = deque([_unsupported('max_tokens')])
    with pytest.raises(LanguageModelError, match='status 400'):
        model.generate(REQUEST)
    echoing.missteps = deque([_unsupported('messages')])
    with pytest.raises(LanguageModelError, match='status 400'):
        model.generate(REQUEST)


@pytest.mark.parametrize('kind', ['gemini', 'openai'])
def test_a_missing_key_names_its_variable(monkeypatch, kind):
    for name in ('GEMINI_API_KEY', 'GOOGLE_API_KEY', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(LanguageModelError, match=f'{kind.upper()}_API_KEY'):
        make_language_model(f'{kind}:m')


def test_a_local_server_needs_no_key(monkeypatch, echoing):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    make_language_model('openai:m', {'base_url': echoing.url}).generate(REQUEST)
    assert 'Bearer none' in echoing.received[0].headers.values()


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
