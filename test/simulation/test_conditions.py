import re
import shutil
from pathlib import Path

import pytest
import yaml

from osmabench_ros.errors import ConfigError
from osmabench_ros.simulation.conditions import list_conditions, load_condition, parse_condition


def test_the_papers_conditions_are_there_and_every_file_is_valid():
    names = list_conditions()
    assert {'baseline', 'nominal', 'camera', 'camera_headlight', 'dynamic', 'velocity'} <= set(
        names
    )
    for name in names:
        condition = load_condition(name)
        assert condition.name == name
        assert condition.description.endswith('.')


def test_speeds_are_the_papers_and_velocity_doubles_them():
    for name in ('baseline', 'nominal', 'camera', 'dynamic'):
        motion = load_condition(name).make_motion(5.0)
        assert (motion.linear_m_s, motion.angular_rad_s) == (0.75, 0.8)
    fast = load_condition('velocity').make_motion(5.0)
    assert (fast.linear_m_s, fast.angular_rad_s) == (1.5, 1.6)


def test_a_file_of_the_user_is_read_and_named_after_itself(write_file):
    path = write_file('dusk.yaml', 'lighting: {exposure: 0.5}\n')
    condition = load_condition(str(path))
    assert condition.name == 'dusk'
    assert condition.lighting.exposure == 0.5


def test_an_empty_file_is_the_default(write_file):
    path = write_file('plain.yaml', '')
    assert load_condition(str(path)).lighting == load_condition('baseline').lighting


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r'"camra"\. Did you mean "camera"\?'):
        load_condition('camra')


def test_a_missing_and_a_broken_file_are_named(tmp_path, write_file):
    with pytest.raises(ConfigError, match=r'nowhere\.yaml does not exist'):
        load_condition(str(tmp_path / 'nowhere.yaml'))
    broken = write_file('broken.yaml', 'lighting: [unclosed')
    with pytest.raises(ConfigError, match=r'broken\.yaml, line .* is not '):
        load_condition(str(broken))


LIGHT = {'name': 'a'}
BLUR = {'kind': 'motion_blur'}
MOVED = {'span': {'segments': [1, 2]}, 'offset_m': [0.4, 0.0, 0.0]}


@pytest.mark.parametrize(
    ('data', 'message'),
    [
        ([1, 2], 'x.yaml: must be a mapping'),
        ({'lightning': {}}, 'unknown key "lightning". Did you mean "lighting"?'),
        ({'motion': {'linear': 1}}, 'motion: unknown key "linear". Did you mean "linear_m_s"?'),
        ({'motion': {'linear_m_s': 0}}, 'motion.linear_m_s: Input should be greater than 0'),
        ({'motion': {'speed_factor': float('nan')}}, 'motion.speed_factor'),
        (
            {'lighting': {'exposure': 'bright'}},
            'lighting.exposure: Input should be a valid number',
        ),
        (
            {'lighting': {'lights': [LIGHT, LIGHT]}},
            'lighting.lights: two lights have the same name',
        ),
        ({'lighting': {'unlit': True, 'lights': [LIGHT]}}, 'an unlit condition has no lights'),
        ({'effects': [BLUR, BLUR]}, 'condition x.yaml: effects: two effects are motion_blur'),
        ({'effects': [{'kind': 'gama', 'gamma': 2}]}, 'gama'),
        ({'effects': [{'kind': 'gamma'}]}, 'effects.0.gamma.gamma: Field required'),
        ({'effects': [{'kind': 'gamma', 'gama': 2}]}, 'key "gama". Did you mean "gamma"?'),
        ({'effects': [{'kind': 'white_balance', 'gains': [1, 0, 1]}]}, 'gains must be positive'),
        ({'effects': [{'kind': 'dropped_frames', 'share': 1.0}]}, 'less than 1'),
        ({'effects': [{'gamma': 2}]}, 'effects.0'),
        ({'moving_objects': [MOVED]}, 'say which objects move'),
        (
            {'moving_objects': [{**MOVED, 'names': ['a'], 'offset_m': [0, 0, 0]}]},
            'say how they move',
        ),
        (
            {'moving_objects': [{**MOVED, 'names': ['a'], 'offsets': 1}]},
            'Did you mean "offset_m"?',
        ),
        (
            {'lighting': {'lights': [{'name': 'a', 'color': [2, 0, 0]}]}},
            'lighting.lights.0: a colour is linear RGB in [0, 1]',
        ),
        (
            {'lighting': {'lights': [{'name': 'a', 'kind': 'spot', 'direction': [0, 0, 0]}]}},
            'needs a direction that is not zero',
        ),
        (
            {'lighting': {'ambient': {'alive': [{'segments': [2, 1]}]}}},
            'lighting.ambient.alive.0: the end 1.0 comes before the start 2.0',
        ),
        (
            {'lighting': {'ambient': {'alive': [{'segments': [0, 1], 'seconds': [0, 1]}]}}},
            'give either "segments" or "seconds"',
        ),
        (
            {'lighting': {'ambient': {'flicker': {'frequency_hz': 0, 'depth': 1}}}},
            'flicker.frequency_hz',
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_of_the_fault(data, message):
    with pytest.raises(ConfigError) as caught:
        parse_condition('x', data, 'x.yaml')
    assert message in str(caught.value)
    assert 'x.yaml' in str(caught.value)


def test_extending_changes_key_by_key():
    base = load_condition('velocity')
    own = parse_condition(
        'own', {'extends': 'velocity', 'motion': {'linear_m_s': 0.5}}, 'own.yaml'
    )
    assert own.name == 'own'
    assert own.description == base.description
    assert own.motion.speed_factor == 2.0
    assert own.motion.linear_m_s == 0.5
    with pytest.raises(ConfigError, match=r'extends: unknown condition "velocty"\. Did you mean'):
        parse_condition('own', {'extends': 'velocty'}, 'own.yaml')


def test_the_example_of_the_documentation_is_valid(tmp_path):
    page = Path(__file__).parents[2] / 'docs' / 'conditions.md'
    lights = Path(__file__).parents[2] / 'config' / 'lights' / 'replica_cad.yaml'
    shutil.copy(lights, tmp_path / 'my_lights.yaml')
    (example,) = re.findall(r'```yaml\n(.*?)```', page.read_text(), re.DOTALL)
    condition = parse_condition('example', yaml.safe_load(example), str(tmp_path / page.name))
    assert len(condition.effects) == 7
