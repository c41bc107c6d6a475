"""Masks of the simulator replace a network, so that association is tested by itself."""

from dataclasses import replace

import numpy as np
import pytest
from support.libraries import needs
from support.sizes import few
from support.world import box_room
from support.world.box_room import Box
from support.world.frames import map_frames

from osmabench_ros.mappers.fusion import VoxelFusion
from osmabench_ros.mappers.open_vocabulary.association import (
    AssociationOptions,
    Detections,
    Fragment,
    ObjectMap,
    lift,
    share_near,
)
from osmabench_ros.mappers.open_vocabulary.mapper import map_of_objects
from osmabench_ros.mappers.oracle import OracleMapper
from osmabench_ros.maps.semantic_map import FeatureSpace, MapHeader, Provenance
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.suites.instances import InstancesSuite
from osmabench_ros.suites.suite import SuiteContext

pytestmark = needs('sklearn')

LABELS = box_room.LABELS
DIMENSIONS = 64
BASIS = np.linalg.qr(np.random.default_rng(7).normal(size=(DIMENSIONS, DIMENSIONS)))[0]
# A direction for each class; those of different classes are perpendicular.
TEXT = BASIS[: len(LABELS.classes)]


def furnished_room():
    """The room with cups in a row on the table, and a second sofa and shelves side by side."""
    cups = [
        Box((1.1 + 0.15 * i, y, 0.7), (1.2 + 0.15 * i, y + 0.1, 0.82), 'cup', (30 * i, 90, 60))
        for i in range(4)
        for y in (-0.45, 0.3)
    ]
    brown = 'shelf', (90, 60, 30)
    shelves = [Box((x, 2.5, 0), (x + 0.7, 2.95, 1.2), *brown) for x in (1.0, 1.72, -1.9)]
    sofa = Box((-0.9, -2.9, 0), (0.9, -2.2, 0.6), 'sofa', (90, 30, 90))
    return (*box_room.ROOM, *cups, *shelves, sofa)


@pytest.fixture(scope='module')
def room():
    return furnished_room()


@pytest.fixture(scope='module')
def frames(room):
    return box_room.frames(room, count=20, size=(320, 240))


@pytest.fixture(scope='module')
def truth(room, frames):
    return box_room.ground_truth(frames, room, box_room.visible_cloud(frames[::4]))


def found_in(frame, rng, missing=0.0, split=0.0):
    """The masks of a frame with noisy features; some are missing, some in two halves."""
    masks, rows = [], []
    for number in np.setdiff1d(frame.instance, [0]):
        mask = frame.instance == number
        if rng.random() < missing:
            continue
        parts = [mask]
        if rng.random() < split:
            columns = np.flatnonzero(mask.any(axis=0))
            left = np.arange(mask.shape[1]) < columns.mean()
            parts = [mask & left, mask & ~left]
        class_id = int(frame.semantic[mask][0])
        masks += parts
        rows += [np.searchsorted(LABELS.ids, class_id)] * len(parts)
    noise = rng.normal(size=(len(rows), DIMENSIONS)) * 0.3 / np.sqrt(DIMENSIONS)
    features = (TEXT[rows] + noise).astype(np.float32)
    return Detections(np.stack(masks), features, np.ones(len(rows), np.float32), ('',) * len(rows))


def mapped(frames, *, missing=0.0, split=0.0, seed=0, **options):
    rng, objects = np.random.default_rng(seed), ObjectMap(AssociationOptions(**options))
    for frame in frames:
        objects.add(lift(frame, found_in(frame, rng, missing, split)))
    return objects


def map_made_of(objects):
    header = MapHeader(Provenance('test'))
    space = FeatureSpace('objects', np.zeros((0, 0), np.float32), 'test')
    options = {'class_text': TEXT, 'scale': 100.0, 'rooms': False}
    return map_of_objects(objects.objects(), header, LABELS, space, **options)


def scores(semantic_map, truth):
    context = SuiteContext('boxes', semantic_map, truth, device='cpu')
    records = InstancesSuite(options={}).evaluate(context)
    return {item.metric: item.value for item in records if not item.class_name}


DAMAGED = ({'missing': 0.1, 'split': 0.1}, 0.85)


@pytest.fixture(scope='module')
def ceiling(frames, truth):
    oracle = OracleMapper(label_set=LABELS, seed=0, options={'rooms': False})
    return scores(map_frames(oracle, frames), truth)


@pytest.mark.full
@pytest.mark.parametrize(('damage', 'share'), few([({}, 0.95), DAMAGED], DAMAGED))
def test_precision_comes_near_that_of_the_oracle(frames, truth, ceiling, damage, share):
    found = scores(map_made_of(mapped(frames, **damage)), truth)
    for metric in ('map_coco', 'ap50_scannet', 'class_agnostic_ap50_scannet'):
        assert ceiling[metric] > 0.9
        assert found[metric] >= share * ceiling[metric], metric


@pytest.mark.full
def test_features_tell_touching_objects_apart_and_geometry_equal_ones(frames, room):
    graph = map_made_of(mapped(frames)).graph
    labels = [node.label for node in graph.nodes]
    assert labels.count('cup') == 9
    assert labels.count('shelf') == 4
    kinds = {node.label: node.kind for node in graph.nodes}
    assert kinds['floor'] is NodeKind.BACKGROUND
    assert kinds['cup'] is NodeKind.OBJECT


def fragment(points, feature, name='', confidence=1.0):
    points = np.asarray(points, np.float32)
    fusion = VoxelFusion(0.025)
    fusion.add(points, np.full((len(points), 3), 9, np.uint8), np.zeros(len(points), np.int64))
    cells = fusion.cells()
    return Fragment(cells, np.asarray(feature, np.float32), confidence, name)


def plate(x=0.0, width=0.5, y=0.0):
    """A square cloud, one point in the middle of each voxel."""
    steps = np.arange(0.0125, width, 0.025)
    grid = np.stack(np.meshgrid(steps + x, steps + y, [0.0125]), axis=-1)
    return grid.reshape(-1, 3)


def test_the_geometric_similarity_is_the_share_of_points_that_lie_near():
    assert share_near(plate(), plate()) == 1.0
    assert share_near(plate(), plate(x=0.26)) == pytest.approx(0.5)
    assert share_near(plate(width=0.25), plate()) == 1.0
    assert share_near(plate(), plate(x=5.0)) == 0.0


@pytest.mark.parametrize(('shift', 'objects'), [(0.425, 2), (0.375, 1)])
def test_a_cloud_joins_above_the_sum_of_similarities_of_the_paper(shift, objects):
    """Equal features give 1; what overlaps by less than a tenth stays under 1.1 of delta_sim."""
    found = ObjectMap(AssociationOptions(min_similarity=1.2))
    found.add([fragment(plate(), [1, 0])])
    found.add([fragment(plate(x=shift), [2, 0])])
    assert len(found.clouds) == objects


def test_unlike_features_keep_clouds_apart():
    together, apart = (ObjectMap(AssociationOptions()) for _ in range(2))
    for objects, feature in ((together, [1, 0]), (apart, [-1, 0])):
        objects.add([fragment(plate(), [1, 0])])
        objects.add([fragment(plate(), feature)])
    assert len(together.clouds) == 1
    assert len(apart.clouds) == 2


def test_features_are_averaged_over_detections_and_names_voted():
    objects = ObjectMap(AssociationOptions(min_detections=1, min_similarity=0.5))
    for feature, name, confidence in (
        ([1, 0], 'cup', 0.4),
        ([0, 1], 'sofa', 0.9),
        ([1, 0], 'cup', 0.3),
    ):
        objects.add([fragment(plate(), feature, name, confidence)])
    [item] = objects.objects()
    np.testing.assert_allclose(item.feature, [2 / 3, 1 / 3])
    assert item.votes == pytest.approx({'cup': 0.7, 'sofa': 0.9})
    assert item.detections == 3
    assert len(item.cells) == 400


def test_objects_that_grew_into_each_other_are_merged():
    objects = ObjectMap(AssociationOptions(min_detections=1, min_similarity=1.5))
    halves = [fragment(plate(width=0.25, x=x), [1, 0]) for x in (0.0, 0.6)]
    objects.add(halves)
    assert len(objects.objects()) == 2
    objects.add([fragment(plate(width=0.24, x=0.6), [1, 0])])
    # One cloud now covers the first half and joins it, since more of it is there.
    objects.add([fragment(plate(width=0.25, x=0.01), [1, 0])])
    assert len(objects.objects()) == 2
    wide = np.concatenate([plate(width=0.25), plate(width=0.25, x=0.25), plate(0.6, 0.25)])
    for _ in range(2):
        objects.clouds[0].take(fragment(wide, [1, 0]))
        objects.changed.add(0)
    [one] = objects.objects()
    assert one.detections == 6
    # Looking at the merged objects has changed nothing.
    assert len(objects.clouds) == 2


def test_rarely_found_objects_are_left_out():
    objects = ObjectMap(AssociationOptions())
    objects.add([fragment(plate(), [1, 0]), fragment(plate(x=3), [0, 1])])
    for _ in range(2):
        objects.add([fragment(plate(), [1, 0])])
    assert [item.detections for item in objects.objects()] == [3]


def test_a_map_of_nothing_is_empty():
    made = map_made_of(ObjectMap(AssociationOptions()))
    assert made.dense is None
    assert not made.graph.nodes


def test_names_of_a_detector_go_before_features():
    objects = ObjectMap(AssociationOptions(min_detections=1))
    cup = TEXT[np.searchsorted(LABELS.ids, LABELS.id_of('cup'))]
    objects.add([fragment(plate(), cup, 'sofa'), fragment(plate(x=3), cup, 'no such thing')])
    assert [node.label for node in map_made_of(objects).graph.nodes] == ['sofa', 'cup']


TABLE = 6


def table_mask(frame):
    mask = (frame.instance == TABLE)[None]
    feature = np.ones((1, 3), np.float32)
    return Detections(mask, feature, np.array([0.7], np.float32), ('table',))


def test_a_cloud_lies_on_the_object_and_keeps_what_is_known_of_it():
    [frame] = [box_room.frames()[0]]
    [fragment] = lift(frame, table_mask(frame))
    box = box_room.ROOM[TABLE - 1]
    assert (fragment.cells.points >= np.array(box.low) - 0.01).all()
    assert (fragment.cells.points <= np.array(box.high) + 0.01).all()
    assert (fragment.name, round(fragment.confidence, 3)) == ('table', 0.7)
    assert np.ptp(fragment.cells.points[:, 1]) > 1.0


def test_what_a_mask_takes_of_the_background_is_left_out():
    [frame] = [box_room.frames()[0]]
    detections = table_mask(frame)
    wide = np.zeros_like(detections.masks)
    wide[0, :, :] = frame.instance == TABLE
    wide[0, :8, :] = True  # the wall behind, far from the table
    dirty = replace(detections, masks=wide)
    [clean] = lift(frame, dirty)
    [alone] = lift(frame, detections)
    assert wide.sum() > detections.masks.sum()
    assert set(clean.cells.voxels.tolist()) == set(alone.cells.voxels.tolist())


def test_small_far_and_empty_masks_are_left_out():
    [frame] = [box_room.frames()[0]]
    detections = table_mask(frame)
    assert lift(frame, detections)
    few = np.zeros_like(detections.masks)
    few[0].flat[np.flatnonzero(detections.masks)[:9]] = True
    assert not lift(frame, replace(detections, masks=few))
    assert not lift(replace(frame, depth_m=frame.depth_m + 6.0), detections)
    none = np.empty((0, *frame.depth_m.shape), bool)
    nothing = Detections(none, np.empty((0, 3), np.float32), np.empty(0, np.float32), ())
    assert not lift(frame, nothing)
