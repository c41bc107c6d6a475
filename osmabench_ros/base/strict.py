"""The one base of what configurations, options and manifests may say, and its names and paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

_LONGEST_NAME = 100
_LONGEST_PART_BYTES, _LONGEST_PATH_BYTES = 255, 4095
"""Of Linux: NAME_MAX, and PATH_MAX with its last byte."""


class Strict(BaseModel):
    """Refuses keys that it does not know, infinite numbers, and true and false for numbers."""

    model_config = ConfigDict(extra='forbid', frozen=True, allow_inf_nan=False)

    # No validator of fields: discriminators of unions must not have one.
    @model_validator(mode='before')
    @classmethod
    def _refuse_bools_as_numbers(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for name, field in cls.model_fields.items():
                value = data.get(field.alias or name)
                if _holds_bool(value) and not _takes_bool(field.annotation):
                    raise ValueError(f'"{name}": true and false are neither numbers nor texts')
        return data


def _holds_bool(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds_bool(item) for item in value)
    return isinstance(value, bool)


def _takes_bool(kind: Any) -> bool:
    """Return whether a type is or holds a bool; models look at their own fields."""
    if parts := get_args(kind):
        return any(_takes_bool(part) for part in parts)
    if kind in (bool, Any, object, dict, list):
        return True
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def plain_name(value: str) -> str:
    """Return a name of letters, digits, "_" and "-", fit for a path; ValueError for another."""
    if not value or not all(char.isalnum() or char in '_-' for char in value):
        raise ValueError('a name consists of letters, digits, "_" and "-"')
    return _of_bearable_length(value)


def _folder_name(value: str) -> str:
    if not value.strip() or value.startswith('.') or not value.isprintable() or '/' in value:
        raise ValueError('a name becomes that of a folder; leave out "/", and dots at its start')
    return _of_bearable_length(value)


def _of_bearable_length(value: str) -> str:
    if len(value.encode()) > _LONGEST_NAME:
        raise ValueError(f'a name has at most {_LONGEST_NAME} bytes')
    return value


def _possible_path(value: str | Path) -> str | Path:
    text = os.fsencode(value) if str(value).isprintable() else b'\0'
    too_long = any(len(part) > _LONGEST_PART_BYTES for part in text.split(b'/'))
    if b'\0' in text or too_long or len(text) > _LONGEST_PATH_BYTES:
        raise ValueError('is no path: too long, or with characters that are not printable')
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
