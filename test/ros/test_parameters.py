from pathlib import Path
from typing import Annotated, Literal

import pytest
from rclpy.node import Node
from rclpy.parameter import Parameter

from osmabench_ros.base.settings import Names, setting
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError
from osmabench_ros.ros.node.parameters import declare


class Lens(Strict):
    """A section of the settings."""

    width: int = setting(640, 'Pixels.', 16, 4096)
    focus_m: float = 1.0


class Camera(Strict):
    """The settings of the node under test."""

    rate: float = setting(5.0, 'Frames per second.', 0.1, 100.0)
    count: int = setting(3, 'Frames.', 1, 10)
    mode: Literal['fast', 'slow'] = setting('fast', 'How.')
    lens: Annotated[Lens, Names(width='image_width')] = Lens()
    topics: tuple[str, ...] = setting((), 'Where.')
    lenses: tuple[Lens, ...] = setting((), 'A YAML list.')
    options: dict[str, float] = setting({}, 'A YAML mapping.')
    folder: Path | None = setting(None, 'To write to.')
    digest: str = ''


def node_with(context, **overrides):
    parameters = [Parameter(name, value=value) for name, value in overrides.items()]
    return Node('under_test', context=context, parameter_overrides=parameters)


def test_defaults_and_overrides(ros_context):
    node = node_with(ros_context, rate=7.5)
    assert declare(node, Camera) == Camera(rate=7.5)
    assert node.describe_parameter('mode').description == 'How. One of: fast, slow.'
    assert node.get_parameter('lenses').value == '[]'
    assert not node.has_parameter('focus_m')
    assert not node.has_parameter('digest')


def test_texts_become_what_the_model_has(ros_context):
    given = {
        'image_width': 32,
        'topics': ['/a', ''],
        'lenses': '[{width: 20}]',
        'options': '{a: 1}',
        'folder': 'x',
    }
    assert declare(node_with(ros_context, **given), Camera) == Camera(
        lens=Lens(width=32),
        topics=('/a',),
        lenses=(Lens(width=20),),
        options={'a': 1.0},
        folder=Path('x'),
    )


def test_a_plan_gives_all_settings_and_parameters_win(ros_context, tmp_path):
    plan = Camera(count=7, lens=Lens(width=20, focus_m=3.0), lenses=(Lens(width=33),))
    file = tmp_path / 'plan.json'
    file.write_text(plan.model_dump_json())
    node = node_with(ros_context, plan_file=str(file), rate=2.0)
    assert declare(node, Camera) == plan.model_copy(update={'rate': 2.0})
    assert node.get_parameter('lenses').value == '[{focus_m: 1.0, width: 33}]'
    file.write_text('{"cont": 7}')
    with pytest.raises(ConfigError, match=r'plan\.json.*cont'):
        declare(node_with(ros_context, plan_file=str(file)), Camera)


@pytest.mark.parametrize(
    ('override', 'words'),
    [
        ({'rte': 1.0}, 'unknown parameter "rte".*Did you mean "rate"'),
        ({'count': 99}, '"count": .*less than or equal to 10'),
        ({'count': 'three'}, '"count": .*valid integer'),
        ({'mode': 'quick'}, "\"mode\": .*'fast' or 'slow'"),
        ({'lenses': '{a: 1}'}, 'node under_test: parameter "lenses" must be a YAML list'),
        ({'lenses': '[{width: 1}]'}, 'parameter "lenses", 0, width: .*greater'),
        ({'options': '3'}, 'parameter "options" must be a YAML mapping'),
        ({'options': '[1'}, 'parameter "options", line 2, column 1: is not YAML'),
    ],
)
def test_wrong_overrides_are_refused(ros_context, override, words):
    with pytest.raises(ConfigError, match=words):
        declare(node_with(ros_context, **override), Camera)
