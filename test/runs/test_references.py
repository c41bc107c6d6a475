"""References of recorded maps: runs, scenes along a recorded path, clouds of the user's."""

import json

import numpy as np
import pytest
from support.world.maps import LABELS, cloud, ground_truth, write_scan

from osmabench_ros.errors import ConfigError, SceneError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.runs.bag_evaluation import cloud_reference, run_reference, scene_reference
from osmabench_ros.runs.config import load_config
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.sequences.ground_truth import read_ground_truth, write_ground_truth


def run_folder(root, run, key, noted=''):
    """Make the folder of a run, and the ground truth and questions that it shares."""
    shared = root / 'shared' / key
    write_ground_truth(ground_truth(), shared / 'ground_truth')
    (shared / 'questions.jsonl').touch()
    (root / run).mkdir()
    (root / run / 'manifest.json').write_text(json.dumps({'shared': noted or key}))
    return root / run


@pytest.mark.parametrize(
    ('run', 'key'),
    [
        ('test.room.baseline.mine.opengl.4', 'test.room.4'),
        ('test.room.baseline.mine.opengl.4-p7-m5.x0-5', 'test.room.4-p7'),
    ],
)
def test_a_run_leads_to_the_ground_truth_it_shares(run, key, tmp_path):
    folder, shared = run_folder(tmp_path, run, key), tmp_path / 'shared' / key
    for given in (folder, shared, shared / 'ground_truth'):
        found = run_reference(given)
        assert found.directory == shared / 'ground_truth'
        assert found.questions_file == shared / 'questions.jsonl'
        assert found.frame_id == 'world'


def test_a_folder_without_ground_truth_is_named(tmp_path):
    folder = run_folder(tmp_path, 'test.room.baseline.mine.opengl.4', 'test.room.5', 'test.room.4')
    with pytest.raises(ConfigError, match='none of these exists: .*osmabench scene ground-truth'):
        run_reference(folder)


def test_a_labelled_cloud_has_objects(tmp_path):
    seen = cloud()
    columns = {'label': seen.labels, 'instance': seen.instances}
    file = write_scan(tmp_path / 'scan.ply', seen.points, **columns)
    found = cloud_reference(file, LABELS, tmp_path / 'out')
    truth = read_ground_truth(found.directory)
    assert [node.label for node in truth.graph.nodes] == ['chair', 'floor', 'table']
    assert truth.seen_instances == (1, 2, 3)
    np.testing.assert_array_equal(truth.surface.labels, seen.labels)
    assert truth.fused is not None
    assert len(truth.unseen) == 0
    # 100 points a square metre on three patches of one square metre, in cells of 25 cm.
    assert truth.points_per_m2 == pytest.approx(100, rel=0.35)
    assert found.frame_id == ''


def test_labels_of_unknown_meaning_leave_the_geometry(tmp_path):
    file = write_scan(tmp_path / 'scan.ply', cloud().points, label=cloud().labels)
    found = cloud_reference(file, None, tmp_path / 'out')
    truth = read_ground_truth(found.directory)
    assert set(truth.surface.labels.tolist()) == {UNLABELLED}
    assert truth.fused is None
    assert 'geometry only' in found.description
    classes = [{'id': item.id, 'name': item.name} for item in LABELS.classes]
    (tmp_path / 'classes.json').write_text(json.dumps({'classes': classes}))
    again = cloud_reference(file, None, tmp_path / 'again')
    assert 'labelled' in again.description.split(',')[-1]


def test_a_scene_is_seen_from_the_recorded_path(tmp_path):
    config = load_config('single_run')
    camera = Intrinsics.from_hfov(320, 240, 1.5)
    look = np.array([[0, 0, 1], [-1, 0, 0], [0, -1, 0]], float)
    pose = Pose(look, np.array([2.3, 6.9, 1.5]))
    path = StampedTrajectory.from_poses([(0, pose)])
    found = scene_reference(config, 'apartment', 0, tmp_path, (path, camera), lambda *_: None)
    assert found.description == 'scene apartment, seed 0, along the recorded path'
    truth = read_ground_truth(found.directory)
    assert truth.fused is None
    assert 0 < len(truth.surface) < len(truth.unseen)
    # The camera looks along x: nothing behind it counts as seen.
    assert truth.surface.points[:, 0].min() > 2.3
    assert len(truth.camera_poses) == 1
    with pytest.raises(SceneError, match='does not exist'):
        scene_reference(config, 'nowhere', 0, tmp_path, (path, camera), lambda *_: None)
