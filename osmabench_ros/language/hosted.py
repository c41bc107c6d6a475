"""What models behind HTTP servers share: a request in limited time, and its failures."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from osmabench_ros.base.configuration import extra
from osmabench_ros.errors import LanguageModelError, OsmabenchError, needing
from osmabench_ros.language.model import (
    ModelReply,
    ModelRequest,
    TransientModelError,
    UnavailableError,
    excerpt,
    malformed_reply,
    without_secret,
)
from osmabench_ros.language.options import (
    checked_address,
    checked_server_options,
    without_secrets,
)


class HostedModel(ABC):
    """A model behind a server, which the library of its API asks once for each `generate`.

    The library neither tries again nor follows redirects: the key goes to the configured host
    only, and is struck out of all that the server repeats.
    """

    def __init__(self, kind: str, model: str, options: Mapping[str, Any], key: str) -> None:
        checked = checked_server_options(kind, model, options)
        self.name = f'{kind}/{model}'
        self._model, self._key, self._timeout_s = model, key, checked.timeout_s
        self._base_url = checked_address(kind, checked.base_url)
        self.server = without_secrets(self._base_url)
        # A time-out of the library begins again with every byte; `generate` limits the whole.
        library = http_library()
        # A connection that is kept may be closed by the server just when the next request comes.
        self._http = library.AsyncClient(
            follow_redirects=False,
            timeout=None,
            limits=library.Limits(max_keepalive_connections=0),
        )

    @abstractmethod
    async def ask(self, request: ModelRequest) -> ModelReply:
        """Ask once; may raise whatever the library raises."""

    def generate(self, request: ModelRequest) -> ModelReply:
        """Ask once; see `LanguageModel.generate`."""
        try:
            reply = _run(asyncio.wait_for(self.ask(request), self._timeout_s))
        except OsmabenchError:
            raise
        except asyncio.TimeoutError:
            late = f'no reply from {self.server} within {self._timeout_s:g} s'
            raise TransientModelError(f'{self.name}: {late}', reason=late) from None
        except Exception as error:
            raise self._failure(error) from None
        return replace(reply, text=without_secret(reply.text, self._key))

    def shown(self, text: object) -> str:
        """Return an excerpt of something that a server sent, without the key."""
        return excerpt(without_secret(str(text), self._key))

    def _failure(self, error: Exception) -> LanguageModelError:
        response = getattr(error, 'response', None)
        if response is not None and response.status_code != HTTPStatus.OK:
            return self._turned_away(response)
        causes = list(_causes(error))
        what = self.shown(f'{type(causes[-1]).__name__}: {causes[-1]}')
        if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
            return UnavailableError(
                f'{self.name}: nothing answers at {self.server}; start the server, or correct '
                'base_url',
                reason=f'connection refused by {self.server}',
            )
        if any(isinstance(cause, http_library().TransportError) for cause in causes):
            return TransientModelError(
                f'{self.name} cannot be reached at {self.server}: {what}',
                reason=f'no reply from {self.server}',
            )
        return malformed_reply(self, what)

    def _turned_away(self, response: Any) -> LanguageModelError:
        """Return the error of an HTTP status; 408, 409, 425, 429 (not quota) and 5xx may pass."""
        status, text = response.status_code, response.text
        message = self.shown(_MESSAGE.findall(text)[0] if _MESSAGE.search(text) else text)
        message = f'{self.name} replied with HTTP status {status}: {message or "(empty)"}'
        reason = self.shown(f'{status} {response.reason_phrase} from {self.server}')
        if response.has_redirect_location:
            target = response.headers['Location'].partition('?')[0]
            reason = f'{self.server} redirects to {self.shown(target)}'
            return LanguageModelError(
                f'{self.name}: {reason}; redirects are not followed, so that the key and the '
                'prompts go nowhere else: set base_url to the address of the server itself',
                reason=reason,
            )
        if _USED_UP.search(text):
            return LanguageModelError(f'{message}; the quota of the key is used up', reason=reason)
        if status in (408, 409, 425, 429) or status >= 500:
            return TransientModelError(message, _retry_after_s(response), reason=reason)
        if status in (401, 403) or _WRONG_KEY.search(text):
            return UnavailableError(f'{message}; check the key in the environment', reason=reason)
        return LanguageModelError(message, reason=reason)


def http_library() -> Any:
    """Return the HTTP library of the clients: httpx2, or httpx for Python 3.10."""
    with needing('language models need openai and google-genai', extra('language')):
        return import_module('httpx2' if find_spec('httpx2') else 'httpx')


_LOCK = threading.Lock()


@cache
def _loop(_process: int) -> asyncio.AbstractEventLoop:
    """Return the event loop of a process that carries all requests, in a thread."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name='language models', daemon=True).start()
    return loop


def _run(coroutine: Coroutine[Any, Any, ModelReply]) -> ModelReply:
    """Wait for a coroutine; Ctrl-C cancels it."""
    with _LOCK:
        loop = _loop(os.getpid())
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    finally:
        future.cancel()


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, the root last; outer ones quote addresses."""
    yield error
    for cause in (*getattr(error, 'exceptions', ()), error.__cause__ or error.__context__):
        if cause is not None:
            yield from _causes(cause)


_MESSAGE = re.compile(r'"message":\s*"((?:[^"\\]|\\.)+)"')
_USED_UP = re.compile(r'"(insufficient_quota|billing_hard_limit_reached|\w*PerDay\w*)"')
"""Waiting cannot help: no credit (OpenAI), a daily quota (Google)."""
_WRONG_KEY = re.compile('"(API_KEY_INVALID|invalid_api_key)"')
_RETRY_DELAY = re.compile(r'"retryDelay":\s*"(\d{1,9}(?:\.\d+)?)s"')


def _retry_after_s(response: Any) -> float | None:
    """Return when a server wants to be asked again: Retry-After, else Google's retryDelay."""
    asked = response.headers.get('Retry-After', '')
    if asked.endswith('GMT'):
        with suppress(ValueError, OverflowError):
            return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
    delay = re.fullmatch(r'(\d{1,9}(?:\.\d+)?)', asked) or _RETRY_DELAY.search(response.text)
    return float(delay[1]) if delay else None
