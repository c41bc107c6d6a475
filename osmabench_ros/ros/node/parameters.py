"""Parameters of a node from its pydantic model; an unknown one is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.settings import Model, Setting, settings_of, with_settings
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import ConfigError, choose

BUILT_IN = ('use_sim_time', 'start_type_description_service')
"""Parameters that rclpy declares by itself, and the prefixes of its own overrides."""


PLAN_FILE = Setting(
    'plan_file',
    (),
    str,
    '',
    'JSON file with all settings, as a run writes it; parameters that are given too win. May be '
    'set while the node is unconfigured, for its next configuration.',
)


AUTOSTART = Setting(
    'autostart', (), bool, False, 'Configure and activate without waiting for a lifecycle manager.'
)


def starts_itself(node: Node) -> bool:
    """Declare whether a node starts without a lifecycle manager, and return the value."""
    return bool(_declare_one(node, AUTOSTART, AUTOSTART.default))


def declare(node: Node, model: type[Model]) -> Model:
    """Declare all parameters of a node that does not spin yet; return them, or ConfigError."""
    settings = settings_of(model)
    _refuse_unknown(node, {item.name for item in (*settings, PLAN_FILE, AUTOSTART)})
    planned = _read_plan(model, _declare_one(node, PLAN_FILE, ''))
    before = {item.name: item.of(planned) for item in settings}
    after = {item.name: _declare_one(node, item, before[item.name]) for item in settings}
    return _with_given(node, planned, before, after)


def planned_anew(node: Node, model: type[Model], file: str) -> Model:
    """Return the settings by another plan; what was given at the start wins, as it did then."""
    planned = _read_plan(model, file)
    before = {item.name: item.of(planned) for item in settings_of(model)}
    after = {
        name: node.get_parameter(name).value if name in node._parameter_overrides else value
        for name, value in before.items()
    }
    return _with_given(node, planned, before, after)


def parameters_of(settings: BaseModel) -> list[Parameter]:
    """Return the values of the parameters of a node that has some settings."""
    return [Parameter(item.name, value=item.of(settings)) for item in settings_of(type(settings))]


def _read_plan(model: type[Model], file: str) -> Model:
    return validated(model, read_json(file, ConfigError) if file else {}, f'plan {file}')


def _with_given(
    node: Node, planned: Model, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Model:
    given = {name: value for name, value in after.items() if value != before[name]}
    return with_settings(planned, given, f'{_of(node)}parameter ')


def _of(node: Node) -> str:
    return f'node {node.get_name()}: '


def _refuse_unknown(node: Node, known: set[str]) -> None:
    # ROS ignores undeclared overrides silently; the overrides have no public accessor.
    for name in node._parameter_overrides:
        if name not in BUILT_IN and not name.startswith('qos_overrides.'):
            choose(name, known, ConfigError, f'{_of(node)}unknown parameter "{name}"')


def _declare_one(node: Node, setting: Setting, default: Any) -> Any:
    where = f'{_of(node)}parameter "{setting.name}"'
    try:
        value = node.declare_parameter(setting.name, default, _descriptor(setting)).value
    except InvalidParameterTypeException as error:
        raise ConfigError(f'{where} must be of type {type(default).__name__}: {error}') from error
    except InvalidParameterValueException as error:
        raise ConfigError(
            f'{where} must lie in {setting.minimum} to {setting.maximum}: {error}'
        ) from error
    if setting.choices:
        choose(value, setting.choices, ConfigError, f'{where} is "{value}"')
    return value


def _descriptor(setting: Setting) -> ParameterDescriptor:
    """Return the ROS descriptor, with range."""
    text = setting.description
    if setting.choices:
        text += f' One of: {", ".join(setting.choices)}.'
    descriptor = ParameterDescriptor(description=text)
    if setting.minimum is None or setting.maximum is None:
        return descriptor
    kind = FloatingPointRange if setting.kind is float else IntegerRange
    bounds = kind(from_value=setting.kind(setting.minimum), to_value=setting.kind(setting.maximum))
    if setting.kind is float:
        descriptor.floating_point_range = [bounds]
    else:
        bounds.step = 1
        descriptor.integer_range = [bounds]
    return descriptor
