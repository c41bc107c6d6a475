"""Options of a suite, checked when the suite is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, suggestion


class SuiteOptions(Strict):
    """Base of the options of a suite; unknown keys are errors."""


Options = TypeVar('Options', bound=SuiteOptions)


def checked_options(model: type[Options], options: Mapping[str, Any], suite: str) -> Options:
    """Return the options as their model; a ConfigError names the suite and the key at fault."""
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        fault = error.errors()[0]
        key = '.'.join(str(part) for part in fault['loc'])
        if fault['type'] == 'extra_forbidden':
            hint = suggestion(key, model.model_fields)
            raise ConfigError(f'suite "{suite}" has no option "{key}". {hint}') from error
        raise ConfigError(f'suite "{suite}", option "{key}": {fault["msg"]}') from error
