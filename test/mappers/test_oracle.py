from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.spatial import cKDTree
from support.libraries import needs_embedder
from support.world import box_room
from support.world.frames import map_frames

from osmabench_ros.errors import ConfigError
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.mappers.bundled import FIRST_ROOM_ID, LABEL_TEXT
from osmabench_ros.mappers.oracle import OracleMapper
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import NodeKind

mapped = partial(box_room.map_room, OracleMapper)


@pytest.fixture(scope='module')
def frames():
    return box_room.frames()


@pytest.fixture(scope='module')
def semantic_map(frames):
    return mapped(frames)


def test_what_was_seen_gets_its_true_label_and_instance(frames, semantic_map):
    truth = box_room.visible_cloud(frames)
    distance, nearest = cKDTree(semantic_map.dense.points).query(truth.points)
    assert distance.max() < 0.04 * np.sqrt(3)
    correct = semantic_map.dense.labels[nearest] == truth.labels
    per_class = [correct[truth.labels == label].mean() for label in np.unique(truth.labels)]
    assert np.mean(per_class) > 0.99
    assert (semantic_map.dense.instances[nearest] == truth.instances).mean() > 0.99


def test_map_points_lie_on_the_surface(semantic_map):
    points, instances = semantic_map.dense.points, semantic_map.dense.instances
    for i, box in enumerate(box_room.ROOM):
        own = points[instances == i + 1]
        low, high = np.array(box.low), np.array(box.high)
        assert ((own > low - 1e-3) & (own < high + 1e-3)).all()


def test_nodes_carry_class_kind_color_and_instance_id(semantic_map):
    nodes = semantic_map.graph.by_id
    assert sorted(nodes) == [*range(1, 10), FIRST_ROOM_ID]
    assert [nodes[i].label for i in (1, 2, 6, 7)] == ['floor', 'wall', 'table', 'cup']
    assert nodes[7].class_id == box_room.LABELS.id_of('cup')
    assert nodes[1].kind is NodeKind.BACKGROUND
    assert nodes[7].kind is NodeKind.OBJECT
    colors = [nodes[i].attributes['color'] for i in range(7, 10)]
    assert colors == ['red', 'blue', 'green']


def test_boxes_are_true_to_the_voxel_where_faces_were_seen(semantic_map):
    cup = semantic_map.graph.by_id[7].box
    np.testing.assert_allclose(cup.minimum, (1.3, -0.1, 0.7), atol=0.03)
    assert cup.maximum[2] == pytest.approx(0.85, abs=0.03)
    sofa = semantic_map.graph.by_id[8]
    np.testing.assert_allclose(sofa.box.maximum, (-2.1, 1.0, 0.6), atol=0.03)
    assert sofa.attributes['length_m'] == pytest.approx(2.0, abs=0.06)


def test_observations_count_the_frames_that_showed_the_object(frames, semantic_map):
    for node in semantic_map.graph.nodes[:9]:
        assert node.observations == sum((frame.instance == node.id).any() for frame in frames)


@needs_embedder
def test_labels_come_with_text_features_where_asked(frames, semantic_map):
    made = mapped(frames, text_features=True)
    space = made.feature_spaces[LABEL_TEXT]
    names = ['floor', 'wall', 'table', 'cup']
    expected = dict(zip(names, SentenceEmbedder().embed(names), strict=True))
    for node in made.graph.nodes:
        if node.label in names:
            np.testing.assert_allclose(
                space.vectors[node.feature_row], expected[node.label], atol=1e-5
            )
    assert made.graph.by_id[FIRST_ROOM_ID].feature_row is None
    labelled = made.dense.labels != UNLABELLED
    rows = np.searchsorted(box_room.LABELS.ids, made.dense.labels[labelled])
    np.testing.assert_array_equal(made.dense.feature_rows[labelled], rows)
    assert (made.dense.feature_rows[~labelled] == -1).all()
    np.testing.assert_array_equal(made.dense.points, semantic_map.dense.points)
    assert not semantic_map.feature_spaces


def test_invalid_far_and_unlabelled_pixels(frames):
    frame = frames[0]
    depth = frame.depth_m.copy()
    depth[:40] = np.nan
    depth[40:60] = np.inf
    semantic, instance = frame.semantic.copy(), frame.instance.copy()
    semantic[60:80], instance[60:80] = UNLABELLED, 0
    depth[80:] = 51.0
    result = mapped([replace(frame, depth_m=depth, semantic=semantic, instance=instance)])
    offset = result.dense.points - frame.camera_pose.translation
    assert np.isfinite(result.dense.points).all()
    assert (offset @ frame.camera_pose.rotation[:, 2]).max() < 50.0
    lost = result.dense.labels == UNLABELLED
    assert lost.any()
    assert (result.dense.instances[lost] == 0).all()
    assert 0 not in result.graph.by_id


def test_voting_keeps_one_point_per_voxel(frames):
    voting = type('Voting', (OracleMapper,), {'votes': True})(
        label_set=box_room.LABELS, seed=0, options={}
    )
    points = map_frames(voting, frames).dense.points
    assert len(points) < len(mapped(frames).dense.points)
    keys = np.floor(points / 0.04).astype(int)
    assert len(np.unique(keys, axis=0)) > 0.98 * len(keys)


def test_a_map_asked_for_early_is_not_complete(frames):
    mapper = OracleMapper(label_set=box_room.LABELS, seed=0, options={})
    mapper.integrate(frames[0])
    early = mapper.semantic_map(final=False)
    assert not early.header.complete
    assert early.header.stamp_ns == frames[0].stamp_ns
    assert early.header.provenance.frames_used == 1


def test_a_frame_without_ground_truth_is_refused(frames):
    with pytest.raises(ConfigError, match='frame 0 has no semantic or no instance'):
        mapped([replace(frames[0], semantic=None)])


def test_a_label_outside_the_label_set_is_named(frames):
    wrong = np.full_like(frames[3].semantic, 77)
    with pytest.raises(ConfigError, match=r'frame 3: label ids \[77\].*"boxes"'):
        mapped([replace(frames[3], semantic=wrong)])


def test_colours_without_light_are_those_of_the_surfaces(frames):
    """In the light of a blue lamp, which the oracle does not see with `albedo`."""
    lit = [
        replace(frame, albedo=frame.color, color=(frame.color * [0.1, 0.2, 1]).astype(np.uint8))
        for frame in frames
    ]

    def colors(**options):
        nodes = mapped(lit, **options).graph.by_id
        return [nodes[i].attributes['color'] for i in range(7, 10)]

    assert colors(albedo=True) == ['red', 'blue', 'green']
    assert colors() != ['red', 'blue', 'green']
    with pytest.raises(ConfigError, match='albedo, but frame 0 has no colours without light'):
        mapped(frames, albedo=True)


def test_a_thing_in_front_of_a_higher_back_stands_on_its_seat():
    """The top of a sofa's box is its back, and an object on the seat hides the seat below it."""
    back = box_room.Box((-2.9, -1.0, 0.6), (-2.7, 1.0, 1.1), 'sofa', (38, 82, 173))
    cup = box_room.Box((-2.4, -0.2, 0.6), (-2.2, 0.0, 0.8), 'cup', (194, 33, 31))
    world = (*box_room.ROOM[:6], box_room.ROOM[7], back, cup)
    sequence = [
        replace(frame, instance=np.where(frame.instance == 8, 7, frame.instance))
        for frame in box_room.frames(world)
    ]
    edges = {(e.source, e.type, e.target) for e in mapped(sequence).graph.edges}
    assert (9, 'on', 7) in edges
    assert not {edge for edge in edges if edge[0] == 9 and edge[1] in ('in', 'attached to')}
