"""Asks a language model: from the cache, with patience, within a budget, several at a time."""

import json
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Generic, TypeVar

from osmabench_ros import errors
from osmabench_ros.base.files import atomic_write
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.language import model as interface
from osmabench_ros.language.model import ModelReply, ModelRequest, Usage


@dataclass(frozen=True)
class Spending:
    """Use so far, or expected at most; tokens as the server counts them, or estimated.

    `requests` are sent, with those that fail.
    """

    requests: int
    cache_hits: int
    prompt_tokens: int
    output_tokens: int
    cost: float


@dataclass
class Account:
    """Keeps the accounts of one client, limited in tokens and money; safe for threads.

    Prices are per million tokens, in any one currency; 0 if unknown.
    """

    input_price: float = 0.0
    output_price: float = 0.0
    max_tokens: int | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = Counter(requests=0, cache_hits=0, prompt_tokens=0, output_tokens=0)
        self._reserved: Counter[str] = Counter()

    def _cost(self, counts: Mapping[str, int]) -> float:
        sent, received = counts['prompt_tokens'], counts['output_tokens']
        return (sent * self.input_price + received * self.output_price) / 1e6

    def reserve(self, request: ModelRequest) -> Usage:
        """Reserve the most a request may use; BudgetExceededError if that is too much."""
        wanted = Usage(interface.estimated_prompt_tokens(request), request.max_output_tokens)
        with self._lock:
            total = self._spent + self._reserved + Counter(asdict(wanted))
            tokens = total['prompt_tokens'] + total['output_tokens']
            for most, used, unit in (
                (self.max_tokens, tokens, ' tokens'),
                (self.max_cost, self._cost(total), ''),
            ):
                if most is not None and used > most:
                    reason = f'the budget of {most}{unit} is used up'
                    remedy = 'all replies are kept: raise it and run again to go on'
                    raise errors.BudgetExceededError(f'{reason}; {remedy}', reason=reason)
            self._reserved.update(asdict(wanted))
            self._spent['requests'] += 1
        return wanted

    def settle(self, reserved: Usage, used: Usage) -> None:
        """Replace a reservation by the actual use."""
        with self._lock:
            self._reserved.subtract(asdict(reserved))
            self._spent.update(asdict(used))

    def hit(self) -> None:
        """Count a reply that needed no request."""
        with self._lock:
            self._spent['cache_hits'] += 1

    @property
    def spending(self) -> Spending:
        """Use so far."""
        with self._lock:
            return Spending(**self._spent, cost=self._cost(self._spent))


@dataclass(frozen=True)
class ResponseCache:
    """Keeps one small file for each reply: the reply and its tokens; no prompt, no key."""

    directory: Path

    def get(self, model: interface.LanguageModel, request: ModelRequest) -> ModelReply | None:
        """Return the reply kept for a request, None if there is none or it is damaged."""
        try:
            data = interface.json_object(self._path(model, request).read_bytes())
            usage = Usage(data['prompt_tokens'], data['output_tokens'])
            return ModelReply(data['text'], usage, data.get('refusal', ''))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(
        self, model: interface.LanguageModel, request: ModelRequest, reply: ModelReply
    ) -> None:
        """Keep a reply; the file appears whole or not at all."""
        data = {'model': model.name, **asdict(reply.usage), 'text': reply.text}
        if reply.refusal:
            data['refusal'] = reply.refusal
        what = f'the response cache {self.directory} cannot be written'
        with (
            errors.errors_as(errors.LanguageModelError, what, errors.RunError),
            atomic_write(self._path(model, request), overwrite=True) as draft,
        ):
            draft.write_text(json.dumps(data, ensure_ascii=False, sort_keys=True), 'utf-8')

    def _path(self, model: interface.LanguageModel, request: ModelRequest) -> Path:
        key = request.cache_key(model.name, model.server)
        return self.directory / key[:2] / f'{key}.json'


T = TypeVar('T')
# Turns a reply into a value; raises ValueError for anything else.
Parser = Callable[[str], T]


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """A parsed reply, or why there is none."""

    value: T | None = None
    error: errors.LanguageModelError | None = None

    @property
    def failure(self) -> str:
        """Why a server gave no reply, '' if it did; a refusal of the model is a reply."""
        if self.error is None or isinstance(self.error, interface.RefusalError):
            return ''
        return self.error.reason


# Failed requests without a single reply after which nothing more is sent.
MAX_FAILED_REQUESTS = 10


class NotAskedError(errors.LanguageModelError):
    """A request was not sent: in a dry run, or as the server would turn it away."""


@dataclass(eq=False)
class ModelClient:
    """A language model with cache, patience, budget and a limit of requests at a time.

    A request that fails is sent again, up to `attempts` times in all. The wait doubles from the
    first to the longest; a server's Retry-After goes first, within the longest wait. A dry client
    counts in its ledger what requests would take at most, and sends none.
    """

    model: interface.LanguageModel
    cache: ResponseCache
    ledger: Account = field(default_factory=Account)
    concurrency: int = 4
    is_dry: bool = False
    attempts: int = 6
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0

    def __post_init__(self) -> None:
        self.name = self.model.name
        self._unavailable: interface.UnavailableError | None = None
        self._ends_waiting = threading.Event()
        self._failed_requests = 0
        self._has_reply = False

    def ask(self, request: ModelRequest, parse: Parser[T]) -> T:
        """Return the parsed reply to one request.

        A reply that does not parse is asked for again with another seed; only replies that parse
        are kept, and refusals; each failure and each wait is shown at once. Once the server would
        take no request of ours, or MAX_FAILED_REQUESTS have failed and none had a reply, nothing
        more is sent; replies that ask to wait are not counted. Raises BudgetExceededError if
        the request could overrun the budget, RefusalError if the model declined,
        LanguageModelError if no attempt gave a usable reply.
        """
        kept = self.cache.get(self.model, request)
        if kept is not None:
            with suppress(interface.TransientModelError):
                value = self._parse_reply(kept, parse)
                self.ledger.hit()
                return value
        if (last := self._unavailable) is not None:
            raise NotAskedError(f'not asked any more: {last}', reason=last.reason)
        if self.is_dry:
            expected = self.ledger.reserve(request)
            self.ledger.settle(expected, expected)
            raise NotAskedError('a dry run asks nobody')
        for number in range(self.attempts):
            try:
                return self._try_once(request, number, parse)
            except interface.UnavailableError as error:
                self._unavailable = error
                raise
            except interface.TransientModelError as error:
                self._count_failure(error)
                if number + 1 == self.attempts or self._unavailable is not None:
                    raise
                wait_s = error.retry_after_s
                if wait_s is None:
                    wait_s = self.first_wait_s * 2.0**number
                wait_s = min(wait_s, self.longest_wait_s)
                _show(f'{error}; asked again in {wait_s:.2g} s')
                if self._ends_waiting.wait(wait_s):
                    raise
        raise AssertionError

    def _count_failure(self, error: interface.TransientModelError) -> None:
        """Give up on a server that has failed too often and never replied."""
        self._failed_requests += error.retry_after_s is None
        if self._has_reply or self._unavailable or self._failed_requests < MAX_FAILED_REQUESTS:
            return
        self._unavailable = interface.UnavailableError(
            f'{self._failed_requests} requests failed and none had a reply, the last: {error}',
            reason=error.reason,
        )
        self._ends_waiting.set()

    def _try_once(self, request: ModelRequest, number: int, parse: Parser[T]) -> T:
        attempt = replace(request, seed=request.seed + number)
        reserved = self.ledger.reserve(attempt)
        used = Usage()
        try:
            reply = self.model.generate(attempt)
            used = reply.usage
        except interface.RefusalError as error:
            reply = ModelReply('', refusal=str(error))
        except errors.OsmabenchError:
            raise
        except Exception as error:  # a third-party model may raise anything
            what = interface.excerpt(f'{type(error).__name__}: {error}')
            raise interface.malformed_reply(self.model, what) from None
        finally:
            self.ledger.settle(reserved, used)
        try:
            value = self._parse_reply(reply, parse)
        except interface.RefusalError:  # it was answered, too
            self._keep(request, reply)
            raise
        self._keep(request, reply)
        return value

    def _keep(self, request: ModelRequest, reply: ModelReply) -> None:
        self._has_reply = True
        self.cache.put(self.model, request, reply)

    def _parse_reply(self, reply: ModelReply, parse: Parser[T]) -> T:
        if reply.refusal:
            raise interface.RefusalError(reply.refusal)
        try:
            return parse(reply.text)
        except ValueError as error:
            what = interface.excerpt(str(error))
            raise interface.TransientModelError(
                f'{self.name} replied with something else than asked for: {what}',
                reason='replies outside the schema',
            ) from error

    def ask_all(
        self,
        requests: Sequence[ModelRequest],
        parse: Parser[T] | Sequence[Parser[T]],
        *,
        progress: Progress = silent,
        what: str = 'replies',
    ) -> list[Outcome[T]]:
        """Return an outcome for each request, in order; a failure is an outcome, not an end.

        There is one parser for all requests, or one for each.

        When the budget is used up, requests that are under way finish and are kept, the rest is
        not sent, and their outcome says so.
        """
        parsers = [parse] * len(requests) if callable(parse) else parse
        jobs = list(enumerate(zip(requests, parsers, strict=True)))
        found: dict[int, Outcome[T]] = {}
        failed = 0
        # Its threads are daemons: nothing waits for them at Ctrl-C, and all that was answered by
        # then is in the cache.
        with ThreadPool(max(1, min(self.concurrency, len(jobs)))) as pool:
            try:
                for place, outcome in pool.imap_unordered(self._settle, jobs):
                    found[place] = outcome
                    failed += bool(outcome.failure)
                    answered = len(found) - failed
                    text = f'{what}: {answered} of {len(jobs)}'
                    text += f', {failed} failed' if failed else ''
                    progress(text, answered / len(jobs))
            except BaseException:
                self._ends_waiting.set()
                raise
        return [found[place] for place, _ in jobs]

    def _settle(self, job: tuple[int, tuple[ModelRequest, Parser[T]]]) -> tuple[int, Outcome[T]]:
        """Return the outcome of a request with its place; other errors of this package pass."""
        place, (request, parse) = job
        try:
            return place, Outcome(value=self.ask(request, parse))
        except errors.LanguageModelError as error:
            quiet = errors.BudgetExceededError, interface.RefusalError, NotAskedError
            if not isinstance(error, quiet):
                _show(str(error))
            return place, Outcome(error=error)
        except SystemExit as error:
            # The pool would wait forever for the answer of a worker that ends.
            text = f'{self.name}: its code asked to exit ({error.code}) while it answered'
            raise errors.LanguageModelError(text) from error


def _show(text: str) -> None:
    """Warn at once, also if a text was shown before."""
    warnings.warn_explicit(text, errors.OsmabenchWarning, __file__, 0)


def raise_if_incomplete(
    failures: Sequence[str],
    what: str,
    kept: Sequence[object] = (),
    remedy: str = 'run the same command again to ask the rest',
) -> None:
    """Raise IncompleteError if a server failed, with missing replies counted by reason.

    A failure is '' for what got a reply; `what` is e.g. ``'questions'``; the error has `kept`.
    """
    reasons = Counter(filter(None, failures))
    if reasons:
        causes = ', '.join(f'{reason} ({count})' for reason, count in reasons.most_common())
        text = f'{reasons.total()} of {len(failures)} {what} unanswered: {causes}'
        raise errors.IncompleteError(f'{text}; the replies so far are kept: {remedy}', kept)
