"""The base of all data models, and the error texts about their faults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo

from osmabench_ros.base.files import read_json
from osmabench_ros.errors import ConfigError, OsmabenchError, RunError, suggestion

Model = TypeVar('Model')
_LONGEST_VALUE, _MOST_FAULTS = 60, 10
_LONGEST_NAME = 100
_LONGEST_PART_BYTES, _LONGEST_PATH_BYTES = 255, 4095
"""Of Linux: NAME_MAX, and PATH_MAX with its last byte."""


class Strict(BaseModel):
    """Immutable; refuses unknown keys, infinite numbers, and true and false for numbers."""

    model_config = ConfigDict(extra='forbid', frozen=True, allow_inf_nan=False)

    # No validator of fields: discriminators of unions must not have one.
    @model_validator(mode='before')
    @classmethod
    def _refuse_unknown_keys_and_bools(cls, data: Any) -> Any:
        if isinstance(data, BaseModel):
            return data
        if not isinstance(data, Mapping):
            raise ValueError('must be a mapping of keys to values')
        fields = _fields_of(cls)
        if unknown := [key for key in data if key not in fields]:
            raise ValueError('; '.join(_unknown(cls, data, unknown)))
        for key, value in data.items():
            # Most values of the records of a report, which there are a million of.
            if type(value) in _PLAIN:
                continue
            if _holds_bool(value) and not _takes_bool(fields[key].annotation):
                raise ValueError(f'"{key}": true and false are neither numbers nor texts')
        return data


def _unknown(model: type[BaseModel], data: Mapping[Any, Any], keys: list[Any]) -> list[str]:
    """Return the errors in data with unknown keys: the keys, and errors in the other values."""
    fields = _fields_of(model)
    faults = [f'unknown key "{key}". {suggestion(str(key), fields)}' for key in keys]
    known = {key: value for key, value in data.items() if key not in keys}
    try:
        model.model_validate(known)
    except ValidationError as error:
        # A key that is missing may be the one that is misspelt.
        faults += [text for kind, text in _faults(error) if kind != 'missing']
    return faults


_PLAIN = frozenset({str, float, int, NoneType})


@cache
def _fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by the keys that data have for them."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def validated(
    model: type[Model],
    data: Any,
    source: str,
    kind: type[OsmabenchError] = ConfigError,
    *,
    remedy: str = '',
) -> Model:
    """Check data from outside against a model; the error names `source`, place and remedy."""
    try:
        return TypeAdapter(model).validate_python(data)
    except ValidationError as error:
        tail = f'; {remedy}' if remedy else ''
        raise kind(f'{source}: {all_faults(error)}{tail}') from error


def read_model(model: type[Model], file: Path) -> Model:
    """Read a JSON file of a run into a model; RunError if it is missing or malformed."""
    remedy = 'restore it, or start over with --fresh'
    return validated(model, read_json(file), f'{file} is malformed', RunError, remedy=remedy)


def first_fault(error: ValidationError) -> str:
    """Return the first fault with its place, if it has one."""
    return _faults(error)[0][1]


def all_faults(error: ValidationError) -> str:
    """Return the faults with their places, of very many the first."""
    faults = list(dict.fromkeys(text for _, text in _faults(error)))
    rest = len(faults) - _MOST_FAULTS
    more = [f'and {rest} more faults'] if rest > 0 else []
    return '; '.join([*faults[:_MOST_FAULTS], *more])


def _faults(error: ValidationError) -> list[tuple[str, str]]:
    """Return kind and text of every fault, the text with its place if it has one."""
    found = []
    for fault in error.errors(include_url=False, include_context=False):
        place = '.'.join(str(part) for part in fault['loc'])
        found.append((fault['type'], ': '.join(filter(None, (place, fault_text(fault))))))
    return found


def fault_text(fault: Any) -> str:
    """Return the error at one place of the data, and the value there."""
    text = str(fault['msg']).removeprefix('Value error, ')
    if fault['type'] in ('missing', 'value_error'):
        return text
    value = repr(fault['input'])
    value = value if len(value) <= _LONGEST_VALUE else f'{value[: _LONGEST_VALUE - 3]}...'
    return f'{text} (it is {value})'


def _holds_bool(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds_bool(item) for item in value)
    return isinstance(value, bool)


def _takes_bool(kind: Any) -> bool:
    """Return whether a type is or contains a bool; models check their own fields."""
    if parts := get_args(kind):
        return any(_takes_bool(part) for part in parts)
    if kind in (bool, Any, object, dict, list):
        return True
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def plain_name(value: str) -> str:
    """Return a name if it has only letters, digits, "_" and "-"; else raise ValueError."""
    if not value or not all(char.isalnum() or char in '_-' for char in value):
        raise ValueError('a name consists of letters, digits, "_" and "-"')
    return _of_bearable_length(value)


def _folder_name(value: str) -> str:
    if not value.strip() or value.startswith('.') or not value.isprintable() or '/' in value:
        raise ValueError('a folder gets this name; leave out "/", and dots at its start')
    return _of_bearable_length(value)


def _of_bearable_length(value: str) -> str:
    if len(value.encode()) > _LONGEST_NAME:
        raise ValueError(f'a name has at most {_LONGEST_NAME} bytes')
    return value


def _possible_path(value: str | Path) -> str | Path:
    text = os.fsencode(value) if str(value).isprintable() else b'\0'
    too_long = any(len(part) > _LONGEST_PART_BYTES for part in text.split(b'/'))
    if b'\0' in text or too_long or len(text) > _LONGEST_PATH_BYTES:
        raise ValueError('is not a path: too long, or with characters that are not printable')
    return value


def _path_below(value: str) -> str:
    parts = PurePosixPath(value).parts
    if not parts or parts[0] == '/' or '..' in parts:
        raise ValueError(f'"{value}" is not in the work folder; name a file below it')
    return str(_possible_path(value))


PlainName = Annotated[str, AfterValidator(plain_name)]
"""Letters, digits, "_" and "-"."""

FolderName = Annotated[str, AfterValidator(_folder_name)]
"""Name that people choose more freely, and that a folder has."""

PathText = Annotated[str, AfterValidator(_possible_path)]
"""Path, or something else such as the name of a bundled file."""

FilePath = Annotated[Path, AfterValidator(_possible_path)]
"""Path that the system can look up."""

PathBelow = Annotated[str, AfterValidator(_path_below)]
"""Path that does not leave the folder it is relative to."""
