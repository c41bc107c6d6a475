"""Asks a language model: from the cache, with patience, within a budget, several at a time."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Generic, TypeVar

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import (
    BudgetExceededError,
    IncompleteError,
    LanguageModelError,
    OsmabenchError,
    OsmabenchWarning,
)
from osmabench_ros.language.budget import Account
from osmabench_ros.language.cache import ResponseCache
from osmabench_ros.language.model import (
    LanguageModel,
    ModelReply,
    ModelRequest,
    RefusalError,
    TransientModelError,
    UnavailableError,
    Usage,
    estimated_prompt_tokens,
    excerpt,
    malformed_reply,
)

T = TypeVar('T')
Parser = Callable[[str], T]
"""Turns a reply into a value; raises ValueError for anything else."""


@dataclass(frozen=True)
class RetryPolicy:
    """How failed requests are tried again.

    The wait doubles from the first to the longest. A server's Retry-After goes first, within the
    longest wait.
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
    """Estimated tokens and cost of the requests of a list that the cache lacks."""

    requests: int
    cached: int
    prompt_tokens: int
    most_output_tokens: int
    cost: float


class NotAskedError(LanguageModelError):
    """A request was not sent, as the server would turn it away."""


class ModelClient:
    """A language model with cache, patience, budget and a limit of requests at a time."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        cache: ResponseCache,
        ledger: Account | None = None,
        patience: RetryPolicy | None = None,
        concurrency: int = 4,
    ) -> None:
        self.name = model.name
        self.ledger = ledger or Account()
        self._model = model
        self._cache = cache
        self._patience = patience or RetryPolicy()
        self._concurrency = concurrency
        self._unavailable: UnavailableError | None = None
        self._interrupted = threading.Event()

    def ask(self, request: ModelRequest, parse: Parser[T]) -> T:
        """Return the parsed reply to one request.

        A reply that does not parse is asked for again with another seed; only replies that parse
        are kept, and refusals; each failure and each wait is shown at once. Once the server would
        take no request of ours, nothing more is sent. Raises BudgetExceededError if the request
        could overrun the budget, RefusalError if the model declined, LanguageModelError if no
        attempt gave a usable reply.
        """
        kept = self._cache.get(self._model, request)
        if kept is not None:
            with suppress(TransientModelError):
                value = self._parse_reply(kept, parse)
                self.ledger.hit()
                return value
        if (last := self._unavailable) is not None:
            raise NotAskedError(f'not asked any more: {last}', reason=last.reason)
        for number in count():
            try:
                return self._try_once(request, number, parse)
            except UnavailableError as error:
                self._unavailable = error
                raise
            except TransientModelError as error:
                if number + 1 == self._patience.attempts:
                    raise
                asked_s, usual_s = error.retry_after_s, self._patience.first_wait_s * 2.0**number
                wait_s = usual_s if asked_s is None else asked_s
                wait_s = min(wait_s, self._patience.longest_wait_s)
                _show(f'{error}; asked again in {wait_s:.2g} s')
                if self._interrupted.wait(wait_s):
                    raise
        raise AssertionError

    def _try_once(self, request: ModelRequest, number: int, parse: Parser[T]) -> T:
        attempt = replace(request, seed=request.seed + number)
        reserved, used = self.ledger.reserve(attempt), Usage()
        try:
            reply = self._model.generate(attempt)
            used = reply.usage
        except RefusalError as error:
            reply = ModelReply('', refusal=str(error))
        except OsmabenchError:
            raise
        except Exception as error:  # a third-party model may raise anything
            what = excerpt(f'{type(error).__name__}: {error}')
            raise malformed_reply(self._model, what) from None
        finally:
            self.ledger.settle(reserved, used)
        try:
            value = self._parse_reply(reply, parse)
        except RefusalError:  # it was answered, too
            self._cache.put(self._model, request, reply)
            raise
        self._cache.put(self._model, request, reply)
        return value

    def _parse_reply(self, reply: ModelReply, parse: Parser[T]) -> T:
        if reply.refusal:
            raise RefusalError(reply.refusal)
        try:
            return parse(reply.text)
        except ValueError as error:
            raise TransientModelError(
                f'{self.name} replied with something else than asked for: {excerpt(str(error))}',
                reason='replies outside the schema',
            ) from error

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
        parsers = [parse] * len(requests) if callable(parse) else parse
        futures: list[Future[Parsed[T]]] = [Future() for _ in requests]
        todo = iter(list(zip(futures, requests, parsers, strict=True)))

        def work() -> None:
            # The iterator of a list is safe for threads.
            for future, request, parser in todo:
                self._fill(future, request, parser)

        for _ in range(min(self._concurrency, len(requests))):
            # Nothing waits for them at Ctrl-C: all that was answered by then is in the cache.
            threading.Thread(target=work, daemon=True).start()
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()  # raises errors of this package
                progress(f'{what}: {done} of {len(requests)}', done / len(requests))
        except BaseException:
            self._interrupted.set()
            raise
        return [future.result() for future in futures]

    def _fill(self, future: Future[Parsed[T]], request: ModelRequest, parse: Parser[T]) -> None:
        try:
            if not self._interrupted.is_set():
                future.set_result(Parsed(value=self.ask(request, parse)))
        except LanguageModelError as error:
            if not isinstance(error, (BudgetExceededError, RefusalError, NotAskedError)):
                _show(str(error))
            future.set_result(Parsed(error=error))
        except BaseException as error:
            future.set_exception(error)

    def estimate(self, requests: Sequence[ModelRequest]) -> CostEstimate:
        """Return what requests would take, without asking."""
        new = [item for item in requests if self._cache.get(self._model, item) is None]
        usage = Usage(
            sum(estimated_prompt_tokens(request) for request in new),
            sum(request.max_output_tokens for request in new),
        )
        return CostEstimate(
            len(requests),
            len(requests) - len(new),
            usage.prompt_tokens,
            usage.output_tokens,
            self.ledger.cost(usage),
        )


def _show(text: str) -> None:
    """Warn at once, also if a text was shown before."""
    warnings.warn_explicit(text, OsmabenchWarning, __file__, 0)


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
        raise IncompleteError(
            f'{reasons.total()} of {len(failures)} {what} unanswered: {causes}; '
            f'what was answered is kept: {remedy}',
            kept,
        )
