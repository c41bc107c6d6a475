"""Driving along recorded poses, from a file or a generated sequence."""

import warnings

import numpy as np
import pytest
from support.world.runs import matrix_config, plans_of
from support.world.scenes import room_scene

from osmabench_ros.errors import ConfigError, OsmabenchWarning, SequenceError
from osmabench_ros.runs.generation import generate_sequences
from osmabench_ros.runs.run_manifest import collect_shared_inputs
from osmabench_ros.runs.shared_path import navigation_of, shared_path
from osmabench_ros.sequences.recorded import open_sequence


def configuration(**trajectory):
    return matrix_config(
        scenes=[{'reference': 'apartment', 'seed': 3}],
        conditions=['compat_baseline'],
        camera={'width': 32, 'height': 24, 'mounting_height_m': 1.2},
        trajectory={'goals': 2, 'frame_rate_hz': 5.0, 'max_frames': 500, **trajectory},
    )


def planned(**trajectory):
    config, scene = configuration(**trajectory), room_scene()
    return shared_path(config, 3, scene, navigation_of(config, scene))


def tum(path, *rows):
    lines = (' '.join(map(str, (i, *row))) for i, row in enumerate(rows))
    path.write_text('\n'.join(lines) + '\n')
    return str(path)


FREE = ((-2.5, 1.2, 0, 0, 0, 0, 1), (-1.0, 1.2, 0, 0, 0, 0, 1))


def test_base_and_camera_poses_of_a_file(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        path = planned(recorded=tum(tmp_path / 'base.tum', *FREE))
    np.testing.assert_allclose(path.states, [[-2.5, 1.2, 0], [-1.0, 1.2, 0]], atol=1e-9)
    assert path.floor_height_m == pytest.approx(0.0, abs=0.05)
    # The optical frame of a camera that looks along world y: x right, y down.
    turn = (-np.sqrt(0.5), 0, 0, np.sqrt(0.5))
    rows = [(x, 1.2, 1.4, *turn) for x in (-2.5, -1.0)]
    path = planned(recorded=tum(tmp_path / 'c.tum', *rows), recorded_frame='camera')
    np.testing.assert_allclose(path.states[:, 2], np.pi / 2, atol=1e-9)


@pytest.mark.gl
def test_a_generated_sequence_is_driven_again(tmp_path, monkeypatch):
    monkeypatch.setattr(
        'osmabench_ros.runs.config.load_scene', lambda *_args, **_options: room_scene()
    )
    first = configuration(goals=1, max_frames=12)
    (made,) = generate_sequences(first, ['osma'], tmp_path / 'first')
    again = configuration(recorded=str(made))
    (repeated,) = generate_sequences(again, ['osma'], tmp_path / 'again')
    one, two = (
        np.array([frame.camera_pose.matrix for frame in open_sequence(folder)])
        for folder in (made, repeated)
    )
    assert len(one) > 5
    np.testing.assert_allclose(one, two, atol=1e-5)


def test_faults_are_named(tmp_path):
    away = tum(tmp_path / 'away.tum', FREE[0], (40.0, 1.2, 0, 0, 0, 0, 1))
    with pytest.raises(
        ConfigError, match=r'away\.tum: pose 1 at \(40\.00, 1\.20\) is outside scene test/room'
    ):
        planned(recorded=away)
    with pytest.raises(SequenceError, match=r'nan\.tum'):
        planned(recorded=tum(tmp_path / 'nan.tum', FREE[0], (float('nan'), 0, 0, 0, 0, 0, 1)))
    with pytest.raises(SequenceError, match=r'gone\.tum'):
        planned(recorded=str(tmp_path / 'gone.tum'))
    scene = room_scene()
    low = scene.box.minimum
    corner = tum(tmp_path / 'w.tum', (low[0] + 0.01, low[1] + 0.01, 0, 0, 0, 0, 1), FREE[0])
    with pytest.warns(OsmabenchWarning, match=r'w\.tum: only 50% of the poses are free'):
        planned(recorded=corner)
    for changes, reported in (
        ({'recorded': 'a.tum', 'strategy': 'coverage'}, '"recorded" says where to drive'),
        ({'recorded': 'a.tum', 'goal_points': [[0, 0], [1, 1]]}, '"recorded" says where'),
        ({'recorded_frame': 'camera'}, '"recorded_frame" is about "recorded"'),
    ):
        with pytest.raises(ConfigError, match=reported):
            configuration(**changes)


def test_a_changed_recording_is_a_changed_input(tmp_path):
    config = configuration(recorded=tum(tmp_path / 'a.tum', *FREE))
    [plan] = plans_of(config, tmp_path)
    before = collect_shared_inputs(plan, 'scene')
    tum(tmp_path / 'a.tum', *FREE, (-0.9, 1.2, 0, 0, 0, 0, 1))
    after = collect_shared_inputs(plan, 'scene')
    [changed] = [name for name in after if after[name] != before[name]]
    assert changed.startswith('trajectory: ')
