"""Options of a server behind which a language model runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, suggestion

MOST_REPLY_MIB = 256.0
"""No honest reply is larger."""


class ServerOptions(Strict):
    """What may be set about a server; keys are not among it.

    Parameters
    ----------
    base_url : str
        Another address than the usual one; '' for the usual.
    timeout_s : float
        Longest wait for a whole reply, from the connection to its last byte.
    max_reply_mib : float
        Largest reply in MiB, after unpacking.
    """

    base_url: str = ''
    timeout_s: float = Field(120.0, gt=0, le=86_400)
    max_reply_mib: float = Field(8.0, gt=0, le=MOST_REPLY_MIB)


def checked_server_options(kind: str, model: str, options: Mapping[str, Any]) -> ServerOptions:
    """Return the options as their model.

    Raises ConfigError if the model has no name, an option is unknown or does not fit; names it.
    """
    if not model:
        raise ConfigError(f'language model "{kind}": name a model, e.g. {kind}:some-model')
    try:
        return ServerOptions.model_validate(dict(options))
    except ValidationError as error:
        fault = error.errors()[0]
        key = '.'.join(str(part) for part in fault['loc'])
        hint = ''
        if fault['type'] == 'extra_forbidden':
            hint = ' ' + suggestion(key, ServerOptions.model_fields)
        raise ConfigError(
            f'language model "{kind}", option "{key}": {fault["msg"]}.{hint}'
        ) from None
