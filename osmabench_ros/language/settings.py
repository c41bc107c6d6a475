"""Settings of language models, and clients made from them, with or without a server."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field

from osmabench_ros.base.configuration import LANGUAGE_MODELS, load_extension
from osmabench_ros.base.settings import setting
from osmabench_ros.base.strict import FilePath, Strict, validated
from osmabench_ros.errors import ConfigError, LanguageModelError
from osmabench_ros.language.client import Account, ModelClient, ResponseCache
from osmabench_ros.language.model import LanguageModel, ModelReply, ModelRequest

_VARIABLES = {'openai': 'OPENAI_BASE_URL', 'gemini': 'GOOGLE_GEMINI_BASE_URL'}
OPENAI_SERVER = 'https://api.openai.com/v1'
_USUAL = {'openai': OPENAI_SERVER, 'gemini': 'https://generativelanguage.googleapis.com'}


def server_address(kind: str, base_url: str = '') -> str:
    """Return the configured address, else the environment's, else the usual one of the kind."""
    return base_url or os.environ.get(_VARIABLES.get(kind, ''), '') or _USUAL.get(kind, '')


def without_secrets(address: str) -> str:
    """Return an address without user, password, query and fragment, where keys may hide.

    Raises ConfigError if it is not http or https; no address is ''.
    """
    if not address:
        return ''
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme in ('http', 'https') and parts.hostname and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        shown = address.rpartition('@')[2].partition('?')[0]
        raise ConfigError(
            f'the base_url of a language model is "{shown}"; it must be like http://127.0.0.1:8000'
        )
    host = parts.netloc.rpartition('@')[2].lower()
    return urlunsplit((parts.scheme, host, parts.path.rstrip('/'), '', ''))


class ServerOptions(Strict):
    """What may be set about a server; keys are not among it."""

    base_url: str = setting('', 'Address of a server of your own.')
    timeout_s: float = Field(
        120.0, gt=0, le=86_400, description='Longest wait for a whole reply, in seconds.'
    )


def checked_server_options(kind: str, model: str, options: Mapping[str, Any]) -> ServerOptions:
    """Return the options as their model; ConfigError names unknown or wrong ones."""
    if not model:
        raise ConfigError(f'language model "{kind}": name a model, e.g. {kind}:some-model')
    return validated(ServerOptions, options, f'language model "{kind}"')


_IS_DRY: ContextVar[bool] = ContextVar('is_dry', default=False)


@contextmanager
def run_dry() -> Iterator[None]:
    """Let clients send no requests, but count them, so that plans can be made without any key."""
    token = _IS_DRY.set(True)
    try:
        yield
    finally:
        _IS_DRY.reset(token)


def make_language_model(reference: str, options: Mapping[str, Any] | None = None) -> LanguageModel:
    """Make a language model of a kind of server, e.g. ``'gemini:gemini-2.5-flash'``.

    Raises ConfigError if there is no such kind, it cannot be imported, or an option is wrong.
    """
    kind, _, model = reference.partition(':')
    factory = load_extension(LANGUAGE_MODELS, kind)
    if _IS_DRY.get() and factory is not OfflineModel:
        checked_server_options(kind, model, {})
        factory, model = OfflineModel, f'{kind}/{model}'
    made: LanguageModel = factory(model=model, options=options or {})
    return made


class ModelAccess(ServerOptions):
    """Where language models are asked, and how much of them; tokens are those in and out."""

    cache: FilePath | None = setting(None, 'Folder of kept replies; else ~/.cache/osmabench.')
    concurrency: int = setting(4, 'Requests under way at a time.', 1)
    max_tokens: int | None = setting(None, 'Stop before more tokens than these are used.', 1)
    max_cost: float | None = Field(None, gt=0, description='Stop before more than this is spent.')
    input_price: float = setting(0.0, 'Price of a million tokens sent.', 0)
    output_price: float = setting(0.0, 'Price of a million tokens received.', 0)

    def client_of(self, model: str) -> ModelClient:
        """Return a client for a model, with its own accounts; a missing key is an error here."""
        options = self.model_dump(include=set(ServerOptions.model_fields))
        limits = (None, None) if _IS_DRY.get() else (self.max_tokens, self.max_cost)
        caches = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache')
        return ModelClient(
            make_language_model(model, options),
            cache=ResponseCache(self.cache or caches / 'osmabench' / 'responses'),
            ledger=Account(self.input_price, self.output_price, *limits),
            concurrency=self.concurrency,
            is_dry=_IS_DRY.get(),
        )


class OfflineModel:
    """Stands for another model, once asked at `base_url`, when there is no network."""

    def __init__(self, *, model: str = '', options: Mapping[str, Any] | None = None) -> None:
        base_url = validated(ServerOptions, options or {}, 'language model "offline"').base_url
        self.name = model or 'offline'
        self.server = without_secrets(server_address(model.partition('/')[0], base_url))

    def generate(self, request: ModelRequest) -> ModelReply:
        """Raise an error, as the reply is not in the cache."""
        place = f' at {self.server}' if self.server else ''
        start = ' '.join(request.prompt.split())[:60]
        reason = f'no reply of {self.name}{place} is in the cache'
        raise LanguageModelError(
            f'{reason} for the prompt that starts "{start}"; run once with that model and server, '
            'or use the rule answerer and the deterministic judge',
            reason=reason,
        )
