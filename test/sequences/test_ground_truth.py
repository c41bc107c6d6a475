import json
from dataclasses import replace

import numpy as np
import pytest
from support.world import box_room
from support.world.scenes import CAMERA, box_object, camera_at, room_scene

from osmabench_ros.base.files import sha256_of
from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Mesh, Scene, SceneObject
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.sequences import ground_truth
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.evaluation import QuestionedMap, answer_all, judge_all
from osmabench_ros.vqa.exact.generation import questions_about

SMALL = Intrinsics.from_hfov(8, 6, 1.5)


def cloud(n, *, normals):
    rng = np.random.default_rng(n)
    return LabelledCloud(
        rng.random((n, 3)).astype(np.float32),
        rng.integers(1, 3, n).astype(np.int32),
        rng.integers(0, 4, n).astype(np.int32),
        rng.random((n, 3)).astype(np.float32) if normals else None,
    )


@pytest.fixture
def truth():
    graph = SceneGraph((SceneNode(1, labels=(ScoredLabel('chair', 1.0, 1),)),))
    poses = (Pose.identity(), Pose.from_yaw(0.5, (1, 2, 3)))
    labels = LabelSet.from_names('test', ['chair', 'table'])
    surface, unseen = cloud(20, normals=True), cloud(7, normals=True)
    return ground_truth.GroundTruth(
        dataset='apartment', scene='s1', label_set=labels, graph=graph, surface=surface,
        unseen=unseen, camera_poses=poses, intrinsics=SMALL, seen_instances=(1, 3),
        max_depth_m=10.0, points_per_m2=400.0,
    )  # fmt: skip


def test_ground_truth_survives_a_folder(truth, tmp_path):
    truth = replace(truth, fused=cloud(11, normals=False))
    ground_truth.write_ground_truth(truth, tmp_path / 'gt')
    again = ground_truth.read_ground_truth(tmp_path / 'gt')
    assert again.fused.normals is None
    for one, other in ((again.surface, truth.surface), (again.unseen, truth.unseen)):
        np.testing.assert_array_equal(one.points, other.points)
        np.testing.assert_array_equal(one.normals, other.normals)
        np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(again.camera_poses[1].matrix, truth.camera_poses[1].matrix)
    assert again.label_set == truth.label_set
    assert again.intrinsics == SMALL
    assert again.seen_instances == (1, 3)
    assert again.graph.by_id[1].label == 'chair'


def test_equal_ground_truth_gives_equal_bytes(truth, tmp_path):
    for name in 'ab':
        ground_truth.write_ground_truth(truth, tmp_path / name)
    assert sha256_of(tmp_path / 'a') == sha256_of(tmp_path / 'b')


def test_damaged_folders_are_named(truth, tmp_path):
    with pytest.raises(SequenceError, match='nowhere'):
        ground_truth.read_ground_truth(tmp_path / 'nowhere')
    ground_truth.write_ground_truth(truth, tmp_path / 'gt')
    (tmp_path / 'gt' / 'unseen_points.npy').unlink()
    with pytest.raises(SequenceError, match=r'unseen_points\.npy'):
        ground_truth.read_ground_truth(tmp_path / 'gt')
    (tmp_path / 'gt' / 'ground_truth.json').write_text('{"format": "other"}')
    with pytest.raises(SequenceError, match="format: Input should be .*it is 'other'"):
        ground_truth.read_ground_truth(tmp_path / 'gt')


def test_seen_instances_need_enough_points():
    assert ground_truth.seen_instances(np.array([0, 0, 0, 5, 5, 5, 2, 2]), 3) == (5,)


def frame(index, depth=2.0):
    shape = (SMALL.height, SMALL.width)
    depth_m = np.full(shape, depth, np.float32)
    depth_m[0] = np.nan
    images = np.zeros((*shape, 3), np.uint8), depth_m, np.full(shape, UNLABELLED, np.uint16)
    return Frame(index, 0, Pose.identity(), SMALL, *images, np.full(shape, 7, np.int32))


def test_fused_cloud_takes_every_fifth_frame_and_tenth_point():
    found = ground_truth.fuse_cloud(frame(index) for index in range(11))
    valid = (SMALL.height - 1) * SMALL.width
    assert len(found) == 3 * -(-valid // 10)
    np.testing.assert_allclose(found.points[:, 2], 2.0)
    assert set(found.labels) == {UNLABELLED}
    assert set(found.instances) == {7}
    assert len(ground_truth.fuse_cloud([frame(0, depth=10.0)])) == 0  # saturated
    with pytest.raises(SequenceError, match='frame 0 has no semantic image'):
        ground_truth.fuse_cloud([replace(frame(0), semantic=None)])


def test_an_object_has_the_colour_of_the_part_that_is_seen():
    """A white sofa with a black front, of which only the front shows."""
    frames = [replace(frame, color=frame.color.copy()) for frame in box_room.frames(count=4)]
    for item in frames:
        item.color[item.instance == 8] = (23, 23, 26)
        item.color[(item.instance == 8) & (np.arange(160) % 16 == 0)] = (237, 237, 232)
    counts = {}
    assert list(ground_truth.count_colors(frames, counts)) == frames
    names = ground_truth.name_colors(counts)
    assert (names[8], names[6], 0 in names) == ('black', 'brown', False)
    counts = {}
    list(ground_truth.count_colors([replace(frames[0], instance=None)], counts))
    assert ground_truth.name_colors(counts) == {}


LABELS = LabelSet.from_names('two squares', ['floor', 'table'], structure=['floor'])


def square(instance, name, side_m, height_m):
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], np.float32) * side_m / 2
    vertices = np.column_stack([corners, np.full(4, height_m)]).astype(np.float32)
    faces = np.array([[0, 1, 2], [0, 2, 3]], np.int32)
    normals = np.tile(np.array([[0, 0, 1]], np.float32), (4, 1))
    mesh = Mesh(vertices, faces, normals, np.zeros((4, 2), np.float32))
    return SceneObject(instance, name, LABELS.id_of(name), (mesh,))


SQUARES = Scene('test', 'squares', LABELS, (square(1, 'floor', 3, 0), square(2, 'table', 1, 1)))


@pytest.fixture(scope='module')
def squares():
    """A table of one square metre 1 m above a floor of nine, seen from 2 m above the floor."""
    down = Pose(np.diag([1.0, -1.0, -1.0]), np.array([0.0, 0.0, 2.0]))
    camera = Intrinsics.from_hfov(200, 200, 2 * np.arctan(0.75))
    return ground_truth.build_ground_truth(SQUARES, [down], camera, points_per_m2=400, seed=3)


def test_points_that_the_table_hides_are_unseen(squares):
    hidden = squares.unseen.points[squares.unseen.labels == LABELS.id_of('floor')]
    # Seen from twice its height, a table of 1 m throws a shadow of 2 m on the floor.
    inside = np.abs(squares.surface.points[squares.surface.instances == 1][:, :2]).max(axis=1)
    assert inside.min() > 0.97
    assert len(hidden) == pytest.approx(400 * 4, rel=0.05)
    assert (squares.surface.instances == 2).sum() == pytest.approx(400, rel=0.02)
    assert len(squares.surface) + len(squares.unseen) == pytest.approx(400 * 10, rel=0.02)
    assert (squares.seen_instances, squares.fused) == ((1, 2), None)
    assert {node.id for node in squares.graph.nodes} == {1, 2}
    np.testing.assert_allclose(np.abs(squares.surface.normals[:, 2]), 1, atol=1e-6)
    again = ground_truth.build_ground_truth(
        SQUARES, squares.camera_poses, squares.intrinsics, points_per_m2=400, seed=3
    )
    np.testing.assert_array_equal(again.surface.points, squares.surface.points)


# A bed of 0.6 m x 2.3 m x 0.5 m behind a screen, which leaves a strip of it free.
BED = 9


@pytest.fixture(scope='module')
def bedroom():
    """A bed with one end in view of a camera, and a table with a box on it in full view."""
    screen = box_object(8, 'wall', (1.7, -1.9, 0), (1.75, 0.4, 2.2))
    bed = box_object(BED, 'ball', (1.9, -1.5, 0), (2.5, 0.8, 0.5))
    poses = [camera_at(-2.5, y, 1.4) for y in (-1.0, 0.0, 1.0, 1.7)]
    return ground_truth.build_ground_truth(room_scene(extra=(screen, bed)), poses, CAMERA, seed=3)


def test_the_visible_part_has_its_own_extent_and_share(bedroom):
    whole, part = (graph.by_id[BED].box for graph in (bedroom.graph, bedroom.visible_graph))
    np.testing.assert_allclose(whole.size, (0.6, 2.3, 0.5), atol=1e-6)
    assert part.size[1] < 1.5
    assert part.maximum[1] == pytest.approx(0.8, abs=0.05)
    assert 0 < bedroom.visible_shares[BED] < ground_truth.SMALL_SHARE
    assert bedroom.uncertain_boxes >= {BED}
    assert bedroom.evaluated_graph.by_id[BED].box is part
    # The box on the table shows all its edges, and is on it by its visible part too.
    assert 7 not in bedroom.uncertain_boxes
    for graph in (bedroom.graph, bedroom.visible_graph):
        assert (7, 'on', 6) in {(e.source, e.type, e.target) for e in graph.edges}


def test_shares_are_those_of_the_surface(bedroom):
    for key, share in bedroom.visible_shares.items():
        seen, hidden = (
            int((cloud.instances == key).sum()) for cloud in (bedroom.surface, bedroom.unseen)
        )
        # Uniform samples of the same surface, of which the probes are more.
        error = 4 * np.sqrt(share * (1 - share) / (seen + hidden)) + 0.01
        assert seen / (seen + hidden) == pytest.approx(share, abs=error)


def test_nothing_is_asked_that_the_visible_part_answers_otherwise(bedroom):
    blind = replace(bedroom, visible_graph=None)
    visible = ground_truth_map(bedroom.visible_graph, bedroom.seen_instances, bedroom.label_set)
    asked = QuestionedMap.in_scene(visible, bedroom, None)
    wrong = {}
    for name, squares in (('blind', blind), ('fair', bedroom)):
        questions = questions_about(squares, scene='s', seed=1, count=100)
        assert len(questions) > 20
        answers = answer_all(asked.semantic_map, questions, asked.rules)
        verdicts = judge_all(questions, answers, asked.equality)
        wrong[name] = [item for item in verdicts if not item.correct]
    assert wrong['blind']
    assert wrong['fair'] == []
    questions = questions_about(bedroom, scene='s', seed=1, count=100)
    about_bed = [q for q in questions if BED in q.evidence.nodes]
    assert about_bed
    share = f'{bedroom.visible_shares[BED]:.3f}'
    assert all(float(q.provenance['visible_share']) <= float(share) for q in about_bed)


def test_visible_parts_are_written_and_read(bedroom, tmp_path):
    ground_truth.write_ground_truth(bedroom, tmp_path / 'truth')
    again = ground_truth.read_ground_truth(tmp_path / 'truth')
    assert again.visible_shares == bedroom.visible_shares
    assert again.uncertain_boxes == bedroom.uncertain_boxes
    assert again.uncertain_edges == bedroom.uncertain_edges
    # Ground squares of before knows nothing of it, and stays readable.
    file = tmp_path / 'truth' / 'ground_truth.json'
    data = json.loads(file.read_text())
    del data['visible_graph'], data['visible_shares']
    file.write_text(json.dumps(data))
    older = ground_truth.read_ground_truth(tmp_path / 'truth')
    assert older.evaluated_graph is older.graph
    assert (older.uncertain_boxes, older.uncertain_edges) == (frozenset(), ())
