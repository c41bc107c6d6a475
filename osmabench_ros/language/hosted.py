"""What models behind HTTP servers share: a request in limited time, and its failures."""

import asyncio
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

from osmabench_ros.base.configuration import extra
from osmabench_ros.errors import LanguageModelError, OsmabenchError, needing
from osmabench_ros.language import model as interface
from osmabench_ros.language import settings


class HostedModel(ABC):
    """A model behind a server, which the library of its API asks once for each `generate`.

    The library neither tries again nor follows redirects: the key goes to the configured host
    only, and is struck out of all that the server repeats.
    """

    kind: ClassVar[str]
    # Variables of the environment of which the first that is set has the key.
    key_variables: ClassVar[tuple[str, ...]]

    def __init__(self, *, model: str, options: Mapping[str, Any]) -> None:
        checked = settings.checked_server_options(self.kind, model, options)
        self.name = f'{self.kind}/{model}'
        self._model = model
        self._key = next(filter(None, map(os.environ.get, self.key_variables)), '').strip()
        self._timeout_s = checked.timeout_s
        address = settings.server_address(self.kind, checked.base_url)
        self.server = settings.without_secrets(address)
        with needing('language models need openai and google-genai', extra('language')):
            # The clients use httpx2, for Python 3.10 httpx.
            self._http = import_module('httpx2' if find_spec('httpx2') else 'httpx')
            self.connect(
                address,
                self._http.AsyncClient(
                    follow_redirects=False,
                    # Begins again with every byte; `generate` limits the whole.
                    timeout=None,
                    # The server may close one that is kept just when the next request comes.
                    limits=self._http.Limits(max_keepalive_connections=0),
                ),
            )
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name=self.name, daemon=True).start()

    @abstractmethod
    def connect(self, address: str, http: Any) -> None:
        """Make the client of the library; LanguageModelError without a key that is needed."""

    @abstractmethod
    async def ask(
        self, request: interface.ModelRequest
    ) -> tuple[interface.ToolReply, interface.Usage]:
        """Ask once, and check how the reply ends; may raise whatever the library raises."""

    def generate(self, request: interface.ModelRequest) -> interface.ModelReply:
        """Ask once; see `LanguageModel.generate`."""
        answer = asyncio.wait_for(self.ask(request), self._timeout_s)
        future = asyncio.run_coroutine_threadsafe(answer, self._loop)
        try:
            reply, usage = future.result()
            text = reply.model_dump_json() if request.tools else reply.text
            if not text:
                what = 'sent an empty reply'
                raise interface.EmptyReplyError(
                    f'{self.name} {what}', reason=f'{self.server} {what}'
                )
            return interface.ModelReply(interface.without_secret(text, self._key), usage)
        except OsmabenchError:
            raise
        except asyncio.TimeoutError:
            late = f'no reply from {self.server} within {self._timeout_s:g} s'
            raise interface.TransientModelError(f'{self.name}: {late}', reason=late) from None
        except Exception as error:
            raise self._make_error(error) from None
        finally:
            future.cancel()  # at Ctrl-C

    def check_end(self, declined: str, *, is_cut_off: bool) -> None:
        """Raise the error of a reply that the model declined, or that is too long."""
        if declined:
            raise interface.RefusalError(f'{self.name} declined: {self._excerpt(declined)}')
        if is_cut_off:
            reason = 'replies cut off at the longest reply allowed'
            raise interface.TransientModelError(f'{self.name}: {reason}', reason=reason)

    def _excerpt(self, text: str) -> str:
        return interface.excerpt(interface.without_secret(text, self._key))

    def _make_error(self, error: Exception) -> LanguageModelError:
        response = getattr(error, 'response', None)
        if response is not None and response.status_code != HTTPStatus.OK:
            return self._explain_status(response)
        causes = list(_list_causes(error))
        what = self._excerpt(f'{type(causes[-1]).__name__}: {causes[-1]}')
        if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
            return interface.UnavailableError(
                f'{self.name}: nothing answers at {self.server}; start the server, or correct '
                'base_url',
                reason=f'connection refused by {self.server}',
            )
        if any(isinstance(cause, self._http.TransportError) for cause in causes):
            return interface.TransientModelError(
                f'{self.name} cannot be reached at {self.server}: {what}',
                reason=f'no reply from {self.server}',
            )
        return interface.malformed_reply(self, what)

    def _explain_status(self, response: Any) -> LanguageModelError:
        """Return the error of an HTTP status; 408, 409, 425, 429 (not quota) and 5xx may pass."""
        status, text = response.status_code, response.text
        message = self._excerpt(_MESSAGE.findall(text)[0] if _MESSAGE.search(text) else text)
        message = f'{self.name} replied with HTTP status {status}: {message or "(empty)"}'
        reason = self._excerpt(f'{status} {response.reason_phrase} from {self.server}')
        remedy = ''
        if response.has_redirect_location:
            target = self._excerpt(response.headers['Location'].partition('?')[0])
            message = f'{self.name}: {self.server} redirects to {target}'
            reason = f'{self.server} redirects to {target}'
            remedy = 'redirects are not followed: set base_url to the address of the server itself'
        elif _USED_UP.search(text):
            remedy = 'the quota of the key is used up'
        elif status in (408, 409, 425, 429) or status >= 500:
            wait_s = _read_retry_after(response)
            return interface.TransientModelError(message, wait_s, reason=reason)
        elif status in (401, 403) or _WRONG_KEY.search(text):
            remedy = 'check the key in the environment'
        elif status == HTTPStatus.NOT_FOUND:
            remedy = 'correct the model or base_url'
        if remedy:
            return interface.UnavailableError(f'{message}; {remedy}', reason=reason)
        return LanguageModelError(message, reason=reason)


def _list_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, the root last; outer ones quote addresses."""
    yield error
    for cause in (*getattr(error, 'exceptions', ()), error.__cause__ or error.__context__):
        if cause is not None:
            yield from _list_causes(cause)


_MESSAGE = re.compile(r'"message":\s*"((?:[^"\\]|\\.)+)"')
# Waiting cannot help: no credit (OpenAI), a daily quota (Google).
_USED_UP = re.compile(r'"(insufficient_quota|billing_hard_limit_reached|\w*PerDay\w*)"')
_WRONG_KEY = re.compile('"(API_KEY_INVALID|invalid_api_key)"')
_RETRY_DELAY = re.compile(r'"retryDelay":\s*"(\d{1,9}(?:\.\d+)?)s"')


def _read_retry_after(response: Any) -> float | None:
    """Return when a server wants to be asked again: Retry-After, else Google's retryDelay."""
    header = response.headers.get('Retry-After', '')
    delay = re.fullmatch(r'(\d{1,9}(?:\.\d+)?)', header) or _RETRY_DELAY.search(response.text)
    return float(delay[1]) if delay else None
