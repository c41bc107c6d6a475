import json
from dataclasses import replace

import numpy as np
import pytest
from support.world.scenes import CAMERA, box_object, camera_at, room_scene

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Mesh, Scene, SceneObject
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences import ground_truth
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.evaluation import QuestionedMap, answer_all, judge_all
from osmabench_ros.vqa.exact.generation import questions_about

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
def truth():
    """A table of one square metre 1 m above a floor of nine, seen from 2 m above the floor."""
    down = Pose(np.diag([1.0, -1.0, -1.0]), np.array([0.0, 0.0, 2.0]))
    camera = Intrinsics.from_hfov(200, 200, 2 * np.arctan(0.75))
    return ground_truth.build_ground_truth(SQUARES, [down], camera, points_per_m2=400, seed=3)


def test_points_that_the_table_hides_are_unseen(truth):
    hidden = truth.unseen.points[truth.unseen.labels == LABELS.id_of('floor')]
    # Seen from twice its height, a table of 1 m throws a shadow of 2 m on the floor.
    inside = np.abs(truth.surface.points[truth.surface.instances == 1][:, :2]).max(axis=1)
    assert inside.min() > 0.97
    assert len(hidden) == pytest.approx(400 * 4, rel=0.05)
    assert (truth.surface.instances == 2).sum() == pytest.approx(400, rel=0.02)
    assert len(truth.surface) + len(truth.unseen) == pytest.approx(400 * 10, rel=0.02)
    assert (truth.seen_instances, truth.fused) == ((1, 2), None)
    assert {node.id for node in truth.graph.nodes} == {1, 2}
    np.testing.assert_allclose(np.abs(truth.surface.normals[:, 2]), 1, atol=1e-6)
    again = ground_truth.build_ground_truth(
        SQUARES, truth.camera_poses, truth.intrinsics, points_per_m2=400, seed=3
    )
    np.testing.assert_array_equal(again.surface.points, truth.surface.points)


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
    for name, truth in (('blind', blind), ('fair', bedroom)):
        questions = questions_about(truth, scene='s', seed=1, count=100)
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
    # Ground truth of before knows nothing of it, and stays readable.
    file = tmp_path / 'truth' / 'ground_truth.json'
    data = json.loads(file.read_text())
    del data['visible_graph'], data['visible_shares']
    file.write_text(json.dumps(data))
    older = ground_truth.read_ground_truth(tmp_path / 'truth')
    assert older.evaluated_graph is older.graph
    assert (older.uncertain_boxes, older.uncertain_edges) == (frozenset(), ())
