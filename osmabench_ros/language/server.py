"""One request to a server under bounds: where it goes, how long it takes, how much comes back."""

from __future__ import annotations

import os
import re
import socket
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import TracebackType
from typing import Any
from urllib.parse import urljoin

from osmabench_ros.base.configuration import extra
from osmabench_ros.errors import LanguageModelError, MissingDependencyError, needing
from osmabench_ros.language.model import (
    AuthenticationError,
    TransientModelError,
    excerpt,
    json_object,
    without_secret,
)
from osmabench_ros.language.options import ServerOptions, host_of

_CHUNK_BYTES = 16 * 1024
_MIB = 2**20


@dataclass(frozen=True)
class HttpReply:
    """What came back, unpacked, with the key struck out wherever the server repeats it."""

    host: str
    status: int
    content: bytes
    retry_after: str | None = None


class Server:
    """Posts to the server of a language model; the key goes into a header and nowhere else."""

    def __init__(self, name: str, key: str, options: ServerOptions) -> None:
        self._name = name
        self._key = key
        self._options = options

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> HttpReply:
        """Post JSON and return the reply, whatever its status.

        Raises LanguageModelError at a redirect, as key and prompt go to the named host or nowhere,
        and TransientModelError if no whole reply comes back within the bounds.
        """
        host = host_of(url)
        try:
            with _Deadline(self._options.timeout_s) as deadline:
                return self._posted(url, host, body, headers, deadline)
        except (LanguageModelError, MissingDependencyError):
            raise
        except Exception as error:
            # Libraries raise errors of many kinds at what a hostile server sends.
            if deadline.passed or _is_timeout(error):
                late = f'no reply from {host} within {self._options.timeout_s:g} s'
                raise TransientModelError(f'{self._name}: {late}', reason=late) from None
            what = without_secret(_cause(error), self._key)
            raise TransientModelError(
                f'{self._name} cannot be reached at {host}: {what}', reason=f'no reply from {host}'
            ) from None

    def _posted(
        self, url: str, host: str, body: bytes, headers: Mapping[str, str], deadline: _Deadline
    ) -> HttpReply:
        with _session(deadline) as session:
            response = session.post(
                url,
                data=body,
                headers={**headers, 'Content-Type': 'application/json', 'Accept-Encoding': 'gzip'},
                # Else requests would take a password from ~/.netrc in place of the key.
                auth=lambda prepared: prepared,
                timeout=self._options.timeout_s,
                stream=True,
                allow_redirects=False,
            )
            location = response.headers.get('Location')
            if 300 <= response.status_code < 400 and location is not None:
                raise self._redirected(host, url, location)
            content = self._content(response, host)
            if deadline.passed:  # where no length is stated, a cut looks like the end
                raise TimeoutError
            struck = without_secret(content.decode('latin-1'), self._key).encode('latin-1')
            retry_after = response.headers.get('Retry-After')
            return HttpReply(host, response.status_code, struck, retry_after)

    def _redirected(self, host: str, url: str, location: str) -> LanguageModelError:
        try:
            target = host_of(urljoin(url, location))
        except ValueError:
            target = 'an address that is none'
        reason = f'{host} redirects to {excerpt(without_secret(target, self._key))}'
        return LanguageModelError(
            f'{self._name}: {reason}; redirects are not followed, so that the key and the prompts '
            'go nowhere else: set base_url to the address of the server itself',
            reason=reason,
        )

    def _content(self, response: Any, host: str) -> bytes:
        """Return the body, which may be packed with gzip, as was offered, and in no other way."""
        most = int(self._options.max_reply_mib * _MIB)
        encoding = response.headers.get('Content-Encoding', '').strip().lower()
        if encoding not in ('', 'identity', 'gzip', 'x-gzip'):
            raise ValueError(f'a reply packed with "{excerpt(encoding)}", which was not offered')
        unpacking = zlib.decompressobj(wbits=31) if 'gzip' in encoding else None
        content, received = bytearray(), 0
        while piece := response.raw.read(_CHUNK_BYTES, decode_content=False):
            received += len(piece)
            if unpacking is not None:
                piece = unpacking.decompress(piece, most + 1 - len(content))
            content += piece
            if max(received, len(content)) > most:
                large = f'a reply of more than {self._options.max_reply_mib:g} MiB from {host}'
                raise TransientModelError(
                    f'{self._name}: {large}, the bound max_reply_mib', reason=large
                )
            if unpacking is not None and unpacking.eof:
                break
        if unpacking is not None and not unpacking.eof:
            raise ValueError('the packed reply is cut off')
        return bytes(content)


class _Deadline:
    """Cuts connections when time is up: the time-outs of sockets start anew with every byte."""

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._lock = threading.Lock()
        self._guards: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            for guard in self._guards:
                guard.close()
            self._guards.clear()

    def watch(self, descriptor: int) -> None:
        """Cut this connection too; a second descriptor of it also reaches below TLS."""
        with self._lock:
            self._guards.append(socket.socket(fileno=os.dup(descriptor)))
        if self.passed:
            self._pass()

    def _pass(self) -> None:
        self.passed = True
        with self._lock, suppress(OSError):
            for guard in self._guards:
                guard.shutdown(socket.SHUT_RDWR)


def _session(deadline: _Deadline) -> Any:
    """Return a session for one request, with the proxies and certificates of the environment."""
    with needing('language models need requests', extra('language')):
        import requests
        from requests.adapters import HTTPAdapter

    def watched(pool: Any) -> Any:
        class Connection(pool.ConnectionCls):  # type: ignore[misc]
            def connect(self) -> None:
                super().connect()
                deadline.watch(self.sock.fileno())

        pool.ConnectionCls = Connection
        return pool

    class Adapter(HTTPAdapter):  # type: ignore[misc]
        def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
            return watched(super().get_connection_with_tls_context(*args, **kwargs))

        def get_connection(self, *args: Any, **kwargs: Any) -> Any:  # requests before 2.32
            return watched(super().get_connection(*args, **kwargs))

    class Session(requests.Session):  # type: ignore[misc]
        def get_redirect_target(self, resp: Any) -> None:
            """Say that there is none: else the body is read whole, without any bound."""

    session = Session()
    # google-genai and OpenSSL read this variable, requests only its own.
    session.verify = os.environ.get('SSL_CERT_FILE') or True
    for scheme in ('http://', 'https://'):
        session.mount(scheme, Adapter())
    return session


def _is_timeout(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, TimeoutError):
            return True
        error = error.__context__
    return False


def _cause(error: BaseException) -> str:
    """Return the root cause of an error; outer errors quote addresses and headers."""
    import requests

    while error.__context__ is not None:
        error = error.__context__
    name = type(error).__name__
    if isinstance(error, requests.RequestException):
        return name
    return excerpt(f'{name}: {error}')


_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_OUT_OF_CREDIT = ('insufficient_quota', 'billing_hard_limit_reached')
_WRONG_KEY = ('API_KEY_INVALID', 'invalid_api_key')


def failure(model: str, reply: HttpReply) -> LanguageModelError:
    """Return the error for an HTTP status; 408, 409, 425, 429 (not quota) and 5xx may pass."""
    status, body = reply.status, reply.content.decode('utf-8', 'replace')
    text = excerpt(error_fields(reply.content).get('message') or body)
    message = f'{model} replied with HTTP status {status}: {text or "(empty)"}'
    reason = f'{status} {_PHRASES.get(status, "")}'.strip() + f' from {reply.host}'
    details = list(_texts(_parsed(reply.content)))
    if _is_used_up(details):
        return LanguageModelError(
            f'{message}; the quota of the key is used up',
            reason=f'the quota of the key at {reply.host} is used up',
        )
    if status in (408, 409, 425, 429) or status >= 500:
        wait = _seconds(reply.retry_after)
        wait = _retry_delay(details) if wait is None else wait
        return TransientModelError(message, wait, reason=reason)
    if status in (401, 403) or any(value in _WRONG_KEY for _, value in details):
        return AuthenticationError(f'{message}; check the key in the environment', reason=reason)
    return LanguageModelError(message, reason=reason)


def error_fields(content: bytes) -> dict[str, str]:
    """Return the texts of the object `error` of a reply, such as its `param` and `code`."""
    error = _parsed(content).get('error')
    if not isinstance(error, dict):
        return {}
    return {key: value for key, value in error.items() if isinstance(value, str)}


def _parsed(content: bytes) -> dict[str, Any]:
    """Return the object of an error; Google puts it into a list of one."""
    try:
        return json_object(content.strip().removeprefix(b'[').removesuffix(b']'))
    except ValueError:
        return {}


def _texts(data: Any, key: str = '') -> Iterator[tuple[str, str]]:
    """Yield all texts of a JSON value with the key they stand under."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _texts(value, str(name))
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value, key)
    elif isinstance(data, str):
        yield key, data


def _is_used_up(details: list[tuple[str, str]]) -> bool:
    """Return whether waiting a little cannot help: no credit (OpenAI), a daily quota (Google)."""
    return any(
        value in _OUT_OF_CREDIT or (key == 'quotaId' and 'PerDay' in value)
        for key, value in details
    )


def _retry_delay(details: list[tuple[str, str]]) -> float | None:
    """Return Google's google.rpc.RetryInfo, e.g. '34.07s', in seconds."""
    for key, value in details:
        if key == 'retryDelay' and re.fullmatch(r'\d+(?:\.\d+)?s', value):
            return float(value[:-1])
    return None


def _seconds(value: str | None) -> float | None:
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        # When to ask again may come as a date of the wall clock, which nothing else here uses.
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError, OSError):
        return None
