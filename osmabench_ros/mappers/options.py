"""Options of mappers: declared as models, checked with errors that name the key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from osmabench_ros.base.limits.reading import shown
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, suggestion


class MapperOptions(Strict):
    """Base of all option models: immutable, unknown keys are refused."""


OptionsT = TypeVar('OptionsT', bound=MapperOptions)


def parse_options(model: type[OptionsT], options: Mapping[str, Any], mapper: str) -> OptionsT:
    """Check the options that a user wrote for a mapper.

    Raises ConfigError, which names mapper and option, if one is unknown or out of range.
    """
    unknown = sorted(set(options) - set(model.model_fields))
    if unknown:
        raise ConfigError(
            f'mapper "{mapper}" has no option "{unknown[0]}". '
            f'{suggestion(unknown[0], model.model_fields)}'
        )
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        where = '.'.join(str(part) for part in first['loc'])
        raise ConfigError(
            f'mapper "{mapper}": option "{where}" is {shown(repr(first["input"]))}: {first["msg"]}'
        ) from error
