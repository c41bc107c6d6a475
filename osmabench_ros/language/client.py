"""Asks a language model: from the cache, with patience, within a budget, several at a time."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import (
    BudgetExceededError,
    IncompleteError,
    LanguageModelError,
    needing,
)
from osmabench_ros.language.budget import Account
from osmabench_ros.language.cache import ResponseCache
from osmabench_ros.language.model import (
    AuthenticationError,
    LanguageModel,
    ModelReply,
    ModelRequest,
    RefusalError,
    TransientModelError,
    Usage,
    estimated_prompt_tokens,
    excerpt,
    malformed_replies,
)

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar('T')
Parser = Callable[[str], T]
"""Turns a reply into a value; raises ValueError if it is not what was asked for."""


@dataclass(frozen=True)
class RetryPolicy:
    """How failed requests are tried again.

    The wait doubles from the first to the longest, with up to a quarter added at random. A
    server's Retry-After goes first, within the longest wait.
    """

    attempts: int = 6
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """A parsed reply, or why there is none."""

    value: T | None = None
    error: LanguageModelError | None = None

    @property
    def failure(self) -> str:
        """Why a server gave no reply, '' if it did; a refusal of the model is a reply."""
        if self.error is None or isinstance(self.error, RefusalError):
            return ''
        return self.error.reason


@dataclass(frozen=True)
class CostEstimate:
    """What a list of requests would take, estimated for those that the cache lacks."""

    requests: int
    cached: int
    prompt_tokens: int
    most_output_tokens: int
    cost: float


class ModelClient:
    """A language model with cache, patience, budget and a limit of requests at a time."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        cache: ResponseCache | None = None,
        ledger: Account | None = None,
        patience: RetryPolicy | None = None,
        concurrency: int = 4,
    ) -> None:
        if concurrency < 1:
            raise LanguageModelError(f'concurrency is {concurrency}; at least 1 is needed')
        self.name = model.name
        self.ledger = ledger or Account()
        self._model = model
        self._cache = cache
        self._patience = patience or RetryPolicy()
        self._concurrency = concurrency
        self._breaker = _Breaker()

    def ask(self, request: ModelRequest, parse: Parser[T]) -> T:
        """Return the parsed reply to one request.

        A reply that does not parse is asked for again with another seed; only replies that parse
        are kept, and refusals. Once the server does not take the key, or has turned away several
        requests in a row for good, nothing more is sent. Raises BudgetExceededError if the request
        could overrun the budget, RefusalError if the model declined, LanguageModelError if no
        attempt gave a usable reply.
        """
        kept = self._cache.get(self._model, request) if self._cache else None
        if kept is not None:
            with suppress(TransientModelError):
                value = self._parsed(kept, parse)
                self.ledger.hit()
                return value
        self._breaker.check()
        try:
            value = self._asked(request, parse)
        except LanguageModelError as error:
            self._breaker.note(error)
            raise
        self._breaker.note(None)
        return value

    def _asked(self, request: ModelRequest, parse: Parser[T]) -> T:
        with needing('language models need tenacity', extra('language')):
            from tenacity import Retrying, retry_if_exception_type, stop_after_attempt
        attempts = Retrying(
            retry=retry_if_exception_type(TransientModelError),
            stop=stop_after_attempt(self._patience.attempts),
            wait=self._wait_s,
            reraise=True,
        )
        value: T = attempts(self._attempt, request, parse, count())
        return value

    def _attempt(self, request: ModelRequest, parse: Parser[T], number: Iterator[int]) -> T:
        reply = self._generated(replace(request, seed=request.seed + next(number)))
        try:
            value = self._parsed(reply, parse)
        except RefusalError:
            # It was answered, if only with a refusal.
            self._keep(request, reply)
            raise
        self._keep(request, reply)
        return value

    def _generated(self, attempt: ModelRequest) -> ModelReply:
        reserved, used = self.ledger.reserve(attempt), Usage()
        try:
            with malformed_replies(self.name, self._model.server):
                reply = self._model.generate(attempt)
                used = reply.usage
                return reply
        except RefusalError as error:
            return ModelReply('', refusal=str(error))
        finally:
            self.ledger.settle(reserved, used)

    def _keep(self, request: ModelRequest, reply: ModelReply) -> None:
        if self._cache is not None:
            self._cache.put(self._model, request, reply)

    def _parsed(self, reply: ModelReply, parse: Parser[T]) -> T:
        if reply.refusal:
            raise RefusalError(reply.refusal)
        try:
            return parse(reply.text)
        except ValueError as error:
            raise TransientModelError(
                f'{self.name} replied with something else than asked for: {excerpt(str(error))}',
                reason='replies outside the schema',
            ) from error

    def _wait_s(self, state: RetryCallState) -> float:
        patience = self._patience
        error = state.outcome.exception() if state.outcome is not None else None
        asked = getattr(error, 'retry_after_s', None)
        doubled = patience.first_wait_s * 2.0 ** (state.attempt_number - 1)
        wait = float(asked) if asked is not None else doubled
        # Spreads clients that were turned away together; nothing that is reported depends on it.
        jitter = 1.0 + random.random() / 4  # noqa: S311
        return min(wait * jitter, patience.longest_wait_s)

    def ask_all(
        self,
        requests: Sequence[ModelRequest],
        parse: Parser[T] | Sequence[Parser[T]],
        *,
        progress: Progress = silent,
        what: str = 'replies',
    ) -> list[Parsed[T]]:
        """Return an outcome for each request, in order; a failure is an outcome, not an end.

        There is one parser for all requests, or one for each.

        When the budget is used up, requests that are under way finish and are kept, the rest is
        not sent, and their outcome says so.
        """
        outcomes: list[Parsed[T]] = [Parsed() for _ in requests]
        parsers = [parse] * len(requests) if callable(parse) else parse
        with ThreadPoolExecutor(self._concurrency) as pool:
            running = {
                pool.submit(self._outcome, request, parser): position
                for position, (request, parser) in enumerate(zip(requests, parsers, strict=True))
            }
            try:
                for done, future in enumerate(as_completed(running), start=1):
                    outcomes[running[future]] = future.result()
                    progress(f'{what}: {done} of {len(requests)}', done / len(requests))
            except BaseException:
                # Ctrl-C: what is queued must not be sent, what is answered is in the cache.
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return outcomes

    def _outcome(self, request: ModelRequest, parse: Parser[T]) -> Parsed[T]:
        try:
            return Parsed(value=self.ask(request, parse))
        except LanguageModelError as error:
            return Parsed(error=error)

    def estimate(self, requests: Sequence[ModelRequest]) -> CostEstimate:
        """Return what requests would take, without asking."""
        known = [
            self._cache is not None and self._cache.get(self._model, request) is not None
            for request in requests
        ]
        new = [request for request, cached in zip(requests, known, strict=True) if not cached]
        usage = Usage(
            sum(estimated_prompt_tokens(request) for request in new),
            sum(request.max_output_tokens for request in new),
        )
        return CostEstimate(
            len(requests),
            sum(known),
            usage.prompt_tokens,
            usage.output_tokens,
            self.ledger.prices.cost(usage),
        )


class _Breaker:
    """Stops asking a server that turns every request away for good; safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._last: LanguageModelError | None = None

    def note(self, error: LanguageModelError | None) -> None:
        """Count how a request ended."""
        passing = (TransientModelError, RefusalError, BudgetExceededError)
        with self._lock:
            if error is None or isinstance(error, passing):
                self._in_a_row = 0
                return
            self._in_a_row += MOST_IN_A_ROW if isinstance(error, AuthenticationError) else 1
            if self._in_a_row >= MOST_IN_A_ROW:
                self._last = error

    def check(self) -> None:
        """Raise if no more requests may be sent."""
        if self._last is not None:
            raise LanguageModelError(f'not asked any more: {self._last}', reason=self._last.reason)


MOST_IN_A_ROW = 3
"""Requests that a server turns away for good before no more are sent."""


def raise_if_incomplete(
    failures: Sequence[str],
    what: str,
    kept: Sequence[object] = (),
    remedy: str = 'run the same command again to ask the rest',
) -> None:
    """Raise IncompleteError if a server failed, with what is missing counted by reason.

    A failure is '' for what got a reply; `what` is e.g. ``'questions'``; the error has `kept`.
    """
    reasons = Counter(filter(None, failures))
    if reasons:
        causes = ', '.join(f'{reason} ({count})' for reason, count in reasons.most_common())
        raise IncompleteError(
            f'{reasons.total()} of {len(failures)} {what} unanswered: {causes}; '
            f'what was answered is kept: {remedy}',
            kept,
        )
