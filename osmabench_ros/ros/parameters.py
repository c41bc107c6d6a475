"""Declared, described and checked node parameters; an unknown one is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node

from osmabench_ros.errors import ConfigError, suggestion

BUILT_IN = ('use_sim_time', 'start_type_description_service')
"""Parameters that rclpy declares by itself, and the prefixes of its own overrides."""


@dataclass(frozen=True)
class ParameterSpec:
    """One parameter of a node; the default gives its type, the bounds are inclusive.

    `description` includes the unit; without `choices` a string may be anything.
    """

    name: str
    default: Any
    description: str
    minimum: float | None = None
    maximum: float | None = None
    choices: Sequence[str] = ()

    def descriptor(self) -> ParameterDescriptor:
        """Return the ROS descriptor: read only, with range."""
        text = self.description
        if self.choices:
            text += f' One of: {", ".join(self.choices)}.'
        descriptor = ParameterDescriptor(description=text, read_only=True)
        if self.minimum is not None and self.maximum is not None:
            if isinstance(self.default, float):
                descriptor.floating_point_range = [
                    FloatingPointRange(
                        from_value=float(self.minimum), to_value=float(self.maximum)
                    )
                ]
            else:
                descriptor.integer_range = [
                    IntegerRange(from_value=int(self.minimum), to_value=int(self.maximum), step=1)
                ]
        return descriptor


def declare(node: Node, specs: Sequence[ParameterSpec]) -> dict[str, Any]:
    """Declare all parameters of a node that does not spin yet, and return their values by name.

    Raises ConfigError if an override has the wrong type, range or choice, or is unknown.
    """
    _refuse_unknown(node, specs)
    return {spec.name: _declare_one(node, spec) for spec in specs}


def _refuse_unknown(node: Node, specs: Sequence[ParameterSpec]) -> None:
    known = {spec.name for spec in specs}
    # ROS drops undeclared overrides without a word; the overrides have no public accessor.
    for name in node._parameter_overrides:
        if name not in known and name not in BUILT_IN and not name.startswith('qos_overrides.'):
            raise ConfigError(
                f'node {node.get_name()}: unknown parameter "{name}". {suggestion(name, known)}'
            )


def _declare_one(node: Node, spec: ParameterSpec) -> Any:
    where = f'node {node.get_name()}: parameter "{spec.name}"'
    try:
        value = node.declare_parameter(spec.name, spec.default, spec.descriptor()).value
    except InvalidParameterTypeException as error:
        raise ConfigError(
            f'{where} must be of type {type(spec.default).__name__}: {error}'
        ) from error
    except InvalidParameterValueException as error:
        raise ConfigError(
            f'{where} must lie in {spec.minimum} to {spec.maximum}: {error}'
        ) from error
    if spec.choices and value not in spec.choices:
        raise ConfigError(f'{where} is "{value}". {suggestion(str(value), spec.choices)}')
    return value
