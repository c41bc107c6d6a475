import pytest

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402

from osmabench_ros.errors import ConfigError  # noqa: E402
from osmabench_ros.ros.parameters import ParameterSpec, declare  # noqa: E402

SPECS = (
    ParameterSpec('rate', 5.0, 'Frames per second.', 0.1, 100.0),
    ParameterSpec('count', 3, 'Frames.', 1, 10),
    ParameterSpec('mode', 'fast', 'How.', choices=('fast', 'slow')),
)


def node_with(context: object, **overrides: object) -> Node:
    parameters = [Parameter(name, value=value) for name, value in overrides.items()]
    return Node('under_test', context=context, parameter_overrides=parameters)


def test_defaults_and_overrides(ros_context: object) -> None:
    node = node_with(ros_context, rate=7.5)
    assert declare(node, SPECS) == {'rate': 7.5, 'count': 3, 'mode': 'fast'}
    assert node.describe_parameter('rate').floating_point_range[0].to_value == 100.0


@pytest.mark.parametrize(
    ('override', 'words'),
    [
        ({'rte': 1.0}, 'unknown parameter "rte".*Did you mean "rate"'),
        ({'count': 99}, '"count" must lie in 1 to 10'),
        ({'count': 'three'}, '"count" must be of type int'),
        ({'mode': 'quick'}, '"mode" is "quick"'),
    ],
)
def test_wrong_overrides_are_refused(ros_context: object, override: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        declare(node_with(ros_context, **override), SPECS)
