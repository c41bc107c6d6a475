"""Sequences of a small room on disk, in all formats."""

import numpy as np
import pytest
from support.commands import output_of
from support.world.runs import matrix_config
from support.world.scenes import room_scene

from osmabench_ros.base.files import MARKER, sha256_of
from osmabench_ros.base.progress import silent
from osmabench_ros.errors import RunError
from osmabench_ros.runs import generation
from osmabench_ros.runs.generation import WRITERS, generate_sequences
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.run_manifest import MANIFEST
from osmabench_ros.sequences.ground_truth import read_ground_truth
from osmabench_ros.sequences.recorded import BagSequence, FolderSequence
from osmabench_ros.simulation.robot_path import RobotPath

pytestmark = pytest.mark.gl

DATA = {
    'scenes': [{'reference': 'apartment', 'seed': 3}],
    'conditions': ['baseline', 'velocity'],
    'camera': {'width': 32, 'height': 24, 'mounting_height_m': 1.2},
    'trajectory': {'goals': 1, 'frame_rate_hz': 2.0, 'max_frames': 6},
}
ALL = list(WRITERS)
NAME = 'test.room.3'


def rooms():
    return Preparation(lambda _item: room_scene())


def configuration(**changes):
    return matrix_config(**{**DATA, **changes})


@pytest.fixture(autouse=True)
def small_room(monkeypatch):
    """Every reference leads to a small room."""
    monkeypatch.setattr(
        'osmabench_ros.runs.config.load_scene', lambda *_args, **_options: room_scene()
    )


def test_one_run_gives_the_same_frames_in_every_format(tmp_path):
    shown = []
    written = generate_sequences(
        configuration(), ALL, tmp_path, lambda _text, done: shown.append(done)
    )
    assert written.keys() == {
        tmp_path / form / condition / NAME
        for form in ('osma', 'scannet', 'mcap')
        for condition in ('baseline', 'velocity')
    }
    assert not any(written.values())
    assert shown == sorted(shown)
    counts = []
    for condition in ('baseline', 'velocity'):
        bag = list(BagSequence(tmp_path / 'mcap' / condition / NAME))
        counts.append(len(bag))
        for form in ('osma', 'scannet'):
            folder = list(FolderSequence(tmp_path / form / condition / NAME))
            for one, two in zip(folder, bag, strict=True):
                assert one.stamp_ns == two.stamp_ns
                matrix = two.camera_pose.matrix
                np.testing.assert_allclose(one.camera_pose.matrix, matrix, atol=1e-9)
                # A bag keeps values out of range; in 16 bits they are invalid.
                depth_m = np.where(np.isinf(two.depth_m), np.nan, two.depth_m)
                assert np.isfinite(depth_m).mean() > 0.3
                np.testing.assert_allclose(one.depth_m, depth_m, atol=1e-3)
                np.testing.assert_array_equal(one.semantic, two.semantic)
                np.testing.assert_array_equal(one.instance, two.instance)
    # The path is shared, so that twice the speed sees it in half the frames.
    assert counts[0] > counts[1] >= counts[0] // 2


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name in ('one', 'two'):
        generate_sequences(configuration(conditions=['baseline']), ALL, tmp_path / name)
    for form in ALL:
        one, two = (tmp_path / name / form / 'baseline' / NAME for name in ('one', 'two'))
        assert sha256_of(one) == sha256_of(two)


def test_goes_on_after_an_interruption_without_touching_what_is_complete(tmp_path, monkeypatch):
    taken = generation.SimulatedFrames.frame

    def interrupted(source, index):
        if source.condition.name == 'velocity' and index == 1:
            raise KeyboardInterrupt
        return taken(source, index)

    with monkeypatch.context() as patch:
        patch.setattr(generation.SimulatedFrames, 'frame', interrupted)
        with pytest.raises(KeyboardInterrupt):
            generate_sequences(configuration(), ['osma'], tmp_path)
    complete = tmp_path / 'osma' / 'baseline' / NAME
    assert [path for path in tmp_path.glob('osma/*/[!.]*') if path != complete] == []
    times = {path: path.stat().st_mtime_ns for path in complete.rglob('*')}
    written = generate_sequences(configuration(), ['osma'], tmp_path)
    assert list(written.values()) == [True, False]
    assert {path: path.stat().st_mtime_ns for path in complete.rglob('*')} == times
    assert len(FolderSequence(tmp_path / 'osma' / 'velocity' / NAME)) > 1


def test_refuses_to_overwrite_what_is_of_another_configuration(tmp_path):
    one = configuration(conditions=['baseline'])
    generate_sequences(one, ['osma'], tmp_path)
    before = sha256_of(tmp_path / 'osma')
    camera = {**DATA['camera'], 'mounting_height_m': 1.0}
    with pytest.raises(RunError, match=r'osma/baseline/test\.room\.3 exists and is not of this'):
        generate_sequences(configuration(camera=camera), ['osma'], tmp_path)
    assert sha256_of(tmp_path / 'osma') == before


def test_on_the_command_line(tmp_path):
    file = tmp_path / 'room.yaml'
    file.write_text(configuration(conditions=['baseline']).model_dump_json())
    words = ['scene', 'generate', file, '--format', 'scannet', '--format', 'mcap']
    folders = [str(tmp_path / 'out' / form / 'baseline' / NAME) for form in ('scannet', 'mcap')]
    for kept in ('', ' (kept)'):
        output = output_of(*words, '--out', tmp_path / 'out')
        assert output.splitlines() == [folder + kept for folder in folders]


def test_ground_truth_is_made_once_for_the_same_path(tmp_path):
    folder = tmp_path / 'shared' / NAME
    assert rooms().prepare_all(configuration(), tmp_path, silent) == {folder: False}
    assert len(read_ground_truth(folder / 'ground_truth').graph.nodes) > 3
    names = {MARKER, 'path.json', 'coverage.json', 'ground_truth', 'questions.jsonl', MANIFEST}
    assert {path.name for path in folder.iterdir()} == names
    assert rooms().prepare_all(configuration(), tmp_path, silent) == {folder: True}
    other = configuration(trajectory={**DATA['trajectory'], 'goals': 2})
    with pytest.raises(RunError, match=r'trajectory\.goals: 1 -> 2'):
        rooms().prepare_all(other, tmp_path, silent)
    generate_sequences(configuration(), ['osma'], tmp_path)
    sequence = list(FolderSequence(tmp_path / 'osma' / 'baseline' / NAME))
    driven = RobotPath.read(folder / 'path.json')
    start = sequence[0].camera_pose.translation[:2]
    np.testing.assert_allclose(start, driven.states[0][:2], atol=1e-6)
