"""Parameters of a node from its pydantic model, which checks them; an unknown one is refused."""

from typing import Any

from pydantic import BaseModel
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.settings import Model, Setting, settings_of, with_settings
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import ConfigError, choose

# Parameters that rclpy declares by itself, and the prefixes of its overrides.
BUILT_IN = ('use_sim_time', 'start_type_description_service')


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
    value = _declare(node, AUTOSTART, AUTOSTART.default)
    if not isinstance(value, bool):
        raise ConfigError(f'{_of(node)}parameter "{AUTOSTART.name}" must be true or false')
    return value


def declare(node: Node, model: type[Model]) -> Model:
    """Declare all parameters of a node that does not spin yet; return its settings."""
    settings = settings_of(model)
    known = {item.name for item in (*settings, PLAN_FILE, AUTOSTART)}
    # ROS ignores undeclared overrides silently; the overrides have no public accessor.
    for name in node._parameter_overrides:
        if name not in BUILT_IN and not name.startswith('qos_overrides.'):
            choose(name, known, ConfigError, f'{_of(node)}unknown parameter "{name}"')
    file = _declare(node, PLAN_FILE, '')
    planned = _read_plan(model, file)
    for item in settings:
        _declare(node, item, item.of(planned))
    return read_settings(node, model, file)


def read_settings(node: Node, model: type[Model], file: str) -> Model:
    """Return the settings of a plan; a parameter that was given at the start wins."""
    names = [item.name for item in settings_of(model) if item.name in node._parameter_overrides]
    given = {name: node.get_parameter(name).value for name in names}
    return with_settings(_read_plan(model, file), given, f'{_of(node)}parameter ')


def parameters_of(settings: BaseModel) -> list[Parameter]:
    """Return the values of the parameters of a node that has some settings."""
    return [Parameter(item.name, value=item.of(settings)) for item in settings_of(type(settings))]


def _read_plan(model: type[Model], file: str) -> Model:
    return validated(model, read_json(file, ConfigError) if file else {}, f'plan {file}')


def _of(node: Node) -> str:
    return f'node {node.get_name()}: '


def _declare(node: Node, setting: Setting, default: Any) -> Any:
    text = setting.description
    if setting.choices:
        text += f' One of: {", ".join(setting.choices)}.'
    # The model checks type, bounds and choices, and says more than ROS would.
    descriptor = ParameterDescriptor(description=text, dynamic_typing=True)
    return node.declare_parameter(setting.name, default, descriptor).value
