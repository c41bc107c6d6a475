"""Parts of a condition file: pydantic models that refuse keys they do not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError, model_validator

from osmabench_ros.base.limits.reading import shown
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, suggestion

Model = TypeVar('Model', bound=BaseModel)


class Section(Strict):
    """A mapping in a condition file; an unknown key is an error that names the nearest known."""

    @model_validator(mode='before')
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    raise ValueError(
                        f'unknown key "{shown(str(key))}". '
                        f'{suggestion(str(key), cls.model_fields)}'
                    )
        return data


def validated(model: type[Model], data: Any, source: str) -> Model:
    """Check what a YAML file held against a model.

    Raises ConfigError with `source`, the first fault and its place in the file.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(f'{source}: must be a mapping of keys to values')
    try:
        return model.model_validate(data)
    except ValidationError as error:
        fault = error.errors()[0]
        place = '.'.join(str(part) for part in fault['loc']) or 'top level'
        text = fault['msg'].removeprefix('Value error, ')
        raise ConfigError(f'{source}: {place}: {text}') from error
