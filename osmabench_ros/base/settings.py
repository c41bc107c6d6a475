"""Users' settings, read off pydantic fields once for parameters, arguments and options."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from types import NoneType
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from osmabench_ros.base.documents import parse_yaml
from osmabench_ros.base.strict import fault_text
from osmabench_ros.errors import ConfigError

Model = TypeVar('Model', bound=BaseModel)


class Names:
    """Names by which users set fields of a section, as metadata of the field that holds it.

    `same` are called as the fields; fields without a name cannot be set.
    """

    def __init__(self, *same: str, **names: str) -> None:
        self.names: Mapping[str, str] = {**dict(zip(same, same, strict=True)), **names}


def setting(
    default: Any, description: str, minimum: float | None = None, maximum: float | None = None
) -> Any:
    """Return a field with its help, which has the unit, and bounds, which are inclusive."""
    return Field(default, description=description, ge=minimum, le=maximum)


@dataclass(frozen=True)
class Setting:
    """A value that users may set; its model checks it.

    `kind` is str, int, float or bool; list for texts; dict for YAML. `path`
    leads to it in the model.
    """

    name: str
    path: tuple[str, ...]
    kind: type
    default: Any
    description: str
    choices: tuple[str, ...] = ()

    def of(self, model: BaseModel) -> Any:
        """Return the value in a model as users write it: a number, text, list or YAML."""
        return _plain(attrgetter('.'.join(self.path))(model), self.kind)

    def typed(self, plain: Any, source: str) -> Any:
        """Return the content of YAML, a list without empty texts, None for '' if it is none."""
        if self.kind is list:
            return [item for item in plain if item]
        if self.kind is not dict or not isinstance(plain, str):
            return None if plain == '' and self.default is None else plain
        data = parse_yaml(plain, source, ConfigError)
        if isinstance(self.default, tuple) and not isinstance(data, list):
            raise ConfigError(f'{source} must be a YAML list')
        if isinstance(self.default, dict) and not isinstance(data, (dict, NoneType)):
            raise ConfigError(f'{source} must be a YAML mapping of names')
        return {} if data is None else data


def settings_of(model: type[BaseModel]) -> tuple[Setting, ...]:
    """Return the settings of a model, section by section: the fields that have a description."""
    found: list[Setting] = []
    for name, field in model.model_fields.items():
        section: Any = field.annotation
        names = next((item.names for item in field.metadata if isinstance(item, Names)), None)
        default = field.get_default(call_default_factory=True)
        if names is not None:
            found += [
                _setting(own, (name, inner), section.model_fields[inner], getattr(default, inner))
                for inner, own in names.items()
            ]
        elif field.description:
            found.append(_setting(name, (name,), field, default))
    return tuple(found)


def with_settings(base: Model, given: Mapping[str, Any], source: str) -> Model:
    """Return a model with some settings replaced as users write them; may raise ConfigError."""
    data: dict[str, Any] = {name: getattr(base, name) for name in type(base).model_fields}
    places: dict[tuple[str, ...], str] = {}
    for item in settings_of(type(base)):
        places[item.path] = item.name
        if item.name not in given:
            continue
        value = item.typed(given[item.name], f'{source}"{item.name}"')
        outer, *inner = item.path
        data[outer] = {**dict(data[outer]), inner[0]: value} if inner else value
    try:
        return type(base).model_validate(data)
    except ValidationError as error:
        fault = error.errors()[0]
        place = tuple(map(str, fault['loc']))
        known = next((n for n in (2, 1) if place[:n] in places), 0)
        name, *inside = (places.get(place[:known], ''), *place[known:])
        where = ', '.join((f'{source}"{name}"', *inside))
        raise ConfigError(f'{where}: {fault_text(fault)}') from error


# By the types of a JSON Schema; everything else is written as YAML.
_KINDS = {'string': str, 'integer': int, 'number': float, 'boolean': bool, 'array': list}


def _setting(name: str, path: tuple[str, ...], field: FieldInfo, default: Any) -> Setting:
    form = TypeAdapter(field.rebuild_annotation()).json_schema()
    named = form.get('$defs', {})
    form = form.get('anyOf', [form])[0]
    form |= named.get(form.get('$ref', '').rpartition('/')[2], {})
    kind: type = _KINDS.get(form.get('type', ''), dict)
    if kind is list and '$ref' in form.get('items', {}):
        kind = dict
    choices = tuple(form.get('enum', ()))
    return Setting(name, path, kind, default, field.description or '', choices)


def _plain(value: Any, kind: type) -> Any:
    if kind is list:
        # ROS knows no empty list.
        return [str(item) for item in value] or ['']
    if kind is dict:
        if isinstance(value, BaseModel) and value == type(value)():
            return ''
        content = to_jsonable_python(value)
        return yaml.safe_dump(content, default_flow_style=True, width=10_000).strip()
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    if isinstance(value, Enum):
        return value.value
    return '' if value is None else kind(value)
