"""The base of all data models, and the error texts about their faults."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeVar, get_args

import pydantic
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from osmabench_ros.base.files import read_json
from osmabench_ros.errors import ConfigError, OsmabenchError, RunError, suggestion

Model = TypeVar('Model')
_LONGEST_VALUE, _MOST_FAULTS = 60, 10
_MAX_NAME = 100


class Strict(pydantic.BaseModel):
    """Immutable; refuses unknown keys, infinite numbers, and true and false for numbers."""

    model_config = pydantic.ConfigDict(extra='forbid', frozen=True, allow_inf_nan=False)

    # No validator of fields: discriminators of unions must not have one.
    @pydantic.model_validator(mode='before')
    @classmethod
    def _refuse_unknown_keys_and_bools(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        fields = _fields_of(cls)
        if unknown := [key for key in data if key not in fields]:
            raise ValueError('; '.join(_explain_unknown(cls, data, unknown)))
        for key, value in data.items():
            if isinstance(value, bool) and key not in _bools_of(cls):
                raise ValueError(f'"{key}": true and false are neither numbers nor texts')
        return data


# How JSON is validated where a number is never a text, nor a text a number.
STRICT_JSON = pydantic.ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)


@dataclass(frozen=True)
class JsonForm:
    """Metadata of a field: the type that JSON has for it, and the ways from it and to it."""

    type: Any
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]

    def __get_pydantic_core_schema__(
        self, _source: Any, handler: pydantic.GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of the type in JSON, with the ways from it and to it."""
        return core_schema.no_info_after_validator_function(
            self.read,
            handler.generate_schema(self.type),
            serialization=core_schema.wrap_serializer_function_ser_schema(
                lambda value, write_form: write_form(self.write(value))
            ),
        )


def _explain_unknown(
    model: type[pydantic.BaseModel], data: Mapping[Any, Any], keys: list[Any]
) -> list[str]:
    """Return the errors in data with unknown keys: the keys, and errors in the other values."""
    faults = [f'unknown key "{key}". {suggestion(str(key), _fields_of(model))}' for key in keys]
    try:
        model.model_validate({key: value for key, value in data.items() if key not in keys})
    except pydantic.ValidationError as error:
        # A key that is missing may be the one that is misspelt.
        faults += [text for kind, text in _list_faults(error) if kind != 'missing']
    return faults


@cache
def _fields_of(model: type[pydantic.BaseModel]) -> dict[str, FieldInfo]:
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
        return pydantic.TypeAdapter(model).validate_python(data)
    except pydantic.ValidationError as error:
        tail = f'; {remedy}' if remedy else ''
        raise kind(f'{source}: {all_faults(error)}{tail}') from error


def read_model(model: type[Model], file: Path) -> Model:
    """Read a JSON file of a run into a model; RunError if it is missing or malformed."""
    remedy = 'restore it, or start over with --fresh'
    return validated(model, read_json(file), f'{file} is malformed', RunError, remedy=remedy)


def first_fault(error: pydantic.ValidationError) -> str:
    """Return the first fault with its place, if it has one."""
    return _list_faults(error)[0][1]


def all_faults(error: pydantic.ValidationError) -> str:
    """Return the faults with their places, of very many the first."""
    faults = list(dict.fromkeys(text for _, text in _list_faults(error)))
    rest = len(faults) - _MOST_FAULTS
    more = [f'and {rest} more faults'] if rest > 0 else []
    return '; '.join([*faults[:_MOST_FAULTS], *more])


def _list_faults(error: pydantic.ValidationError) -> list[tuple[str, str]]:
    """Return kind and text of every fault, the text with its place if it has one."""
    found = []
    for fault in error.errors(include_url=False, include_context=False):
        place = '.'.join(str(part) for part in fault['loc'])
        found.append((fault['type'], ': '.join(filter(None, (place, fault_text(fault))))))
    return found


# Texts of pydantic's errors that speak of Python.
_WORDS = {
    'model_type': 'must be a mapping of keys to values',
    'dataclass_type': 'must be a mapping of keys to values',
    'unexpected_keyword_argument': 'Extra inputs are not permitted',
}


def fault_text(fault: Any) -> str:
    """Return the error at one place of the data, and the value there."""
    text = _WORDS.get(fault['type'], str(fault['msg'])).removeprefix('Value error, ')
    if fault['type'] in ('missing', 'value_error'):
        return text
    value = repr(fault['input'])
    value = value if len(value) <= _LONGEST_VALUE else f'{value[: _LONGEST_VALUE - 3]}...'
    return f'{text} (it is {value})'


@cache
def _bools_of(model: type[pydantic.BaseModel]) -> frozenset[str]:
    """Return the keys of a model that take true and false."""
    fields = _fields_of(model).items()
    return frozenset(key for key, field in fields if _takes_bool(field.annotation))


def _takes_bool(kind: Any) -> bool:
    """Return whether a type is or contains a bool; models check their own fields."""
    if parts := get_args(kind):
        return any(_takes_bool(part) for part in parts)
    if kind in (bool, Any, object, dict, list):
        return True
    return isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)


def _check_plain_name(value: str) -> str:
    if not re.fullmatch(r'[\w-]+', value):
        raise ValueError('a name consists of letters, digits, "_" and "-"')
    return value


def _check_folder_name(value: str) -> str:
    if not value.strip() or value.startswith('.') or not value.isprintable() or '/' in value:
        raise ValueError('a folder gets this name; leave out "/", and dots at its start')
    return value


def _check_path(value: str | Path) -> str | Path:
    if not str(value).isprintable():
        raise ValueError('is not a path: it has characters that are not printable')
    if os.path.expanduser(value).startswith('~'):
        raise ValueError('is not a path: it begins with a user who is not known here')
    return value


def _check_path_below(value: str) -> str:
    path = PurePosixPath(value)
    if not path.parts or path.is_absolute() or '..' in path.parts:
        raise ValueError(f'"{value}" is not in the work folder; name a file below it')
    return value


_SHORT = pydantic.Field(max_length=_MAX_NAME)
# Letters, digits, "_" and "-".
PlainName = Annotated[str, _SHORT, pydantic.AfterValidator(_check_plain_name)]

# Name that people choose more freely, and that a folder has.
FolderName = Annotated[str, _SHORT, pydantic.AfterValidator(_check_folder_name)]

# Path, or something else such as the name of a bundled file.
PathText = Annotated[str, pydantic.AfterValidator(_check_path)]

# Path that the system can look up.
FilePath = Annotated[Path, pydantic.AfterValidator(_check_path)]

# Path that does not leave the folder it is relative to.
PathBelow = Annotated[PathText, pydantic.AfterValidator(_check_path_below)]
