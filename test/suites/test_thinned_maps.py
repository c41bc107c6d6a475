"""Maps that lack points or whole parts: figures do not gain, and what is not there is no zero."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.figures import figures
from support.sizes import few
from support.world.graphs import as_map, ground_truth_of

from osmabench_ros.maps.semantic_map import DenseMap, FeatureSpace, SemanticMap
from osmabench_ros.metrics.geometry import POINT_RADIUS_M, compute_voxel_keys
from osmabench_ros.metrics.tiers import TieredObject, collect_tiers, write_tiers
from osmabench_ros.scenes.apartment.generate import generate_apartment
from osmabench_ros.scenes.visibility import sample_surface
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.suites.instances import InstancesSuite
from osmabench_ros.suites.map_geometry import MapGeometrySuite
from osmabench_ros.suites.openlex3d import OpenLex3DSuite
from osmabench_ros.suites.osma_segmentation import OsmaSegmentationSuite
from osmabench_ros.suites.scene_graph import SceneGraphSuite
from osmabench_ros.suites.suite import SuiteContext

WORDS = ['bench', 'chair', 'floor', 'lamp', 'seat', 'table']


def encode(space, prompts):
    return np.eye(8, dtype=np.float32)[[WORDS.index(word) for word in prompts]]


def thinned(semantic_map, kept):
    dense = semantic_map.dense
    parts = {name: getattr(dense, name)[kept] for name in ('points', 'labels', 'instances')}
    return replace(semantic_map, dense=replace(dense, **parts))


@pytest.fixture(scope='module')
def tiers(tmp_path_factory):
    path = tmp_path_factory.mktemp('tiers') / 'gt_categories.json'
    objects = [
        TieredObject(2, ('table', 'bench'), ('lamp',), ('seat',)),
        TieredObject(3, ('chair', 'seat'), (), ('bench',)),
    ]
    write_tiers(collect_tiers(objects), path)
    return path


@pytest.mark.full
@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    share=st.floats(0.25, 1),
    rest=st.floats(0.25, 1),
    lifted_m=st.sampled_from([0.0, 0.015, 0.03]),
    named=st.sampled_from(['table', 'lamp']),
    seed=st.integers(0, 1000),
)
def test_thinning_never_raises_a_figure(ground_truth, tiers, share, rest, lifted_m, named, seed):
    """Of a perfect map, of one that lies beside the surface, and of one that names a thing wrong.

    Random points are taken away, of the table more than of the rest.
    """
    surface, rng = ground_truth.surface, np.random.default_rng(seed)
    on_table = surface.instances == 2
    labels = np.where(on_table, ground_truth.label_set.id_of(named), surface.labels)
    points = surface.points + np.float32([0, 0, lifted_m])
    dense = DenseMap(points, labels=labels.astype(np.int32), instances=surface.instances)
    of_instances = np.stack([encode(None, [w])[0] for w in ('floor', named, 'chair')])  # type: ignore[arg-type]
    nodes = tuple(
        replace(node, feature_row=node.id - 1, feature_space='clip', parent=None)
        for node in ground_truth.graph.nodes
        if node.kind is not NodeKind.ROOM
    )
    noise = rng.normal(0, 0.1, of_instances.shape).astype(np.float32)
    space = FeatureSpace('clip', of_instances + noise, 'ViT-H-14')
    mapped = as_map(SceneGraph(nodes), ground_truth.label_set, dense)
    whole = replace(mapped, feature_spaces={'clip': space})
    kept = rng.random(len(points)) < np.where(on_table, share * rest, rest).clip(0.25)
    context = SuiteContext('room', whole, ground_truth, device='cpu', text_encoder=encode)
    sparse = replace(context, semantic_map=thinned(whole, kept))
    for suite, is_compared in (
        (MapGeometrySuite(options={}), lambda record: True),
        (
            OsmaSegmentationSuite(options={}),
            # A wrong point that goes missing moves from one of these shares to another.
            lambda record: record.metric not in ('outside_vocabulary', 'unlabelled'),
        ),
        (
            OpenLex3DSuite(options={'tiers': tiers}),
            lambda record: record.mode == 'strict' and record.metric.startswith('set_ranking'),
        ),
    ):
        before, after = figures(suite, context), figures(suite, sparse)
        compared = [key for key, x in before.items() if x.applicable and is_compared(x)]
        assert len(compared) > 4
        for key in compared:
            gain = after[key].value - before[key].value
            gain = gain if before[key].higher_is_better else -gain
            # Normals and distances come from single precision.
            assert gain <= 1e-5, (suite.name, key, before[key].value, after[key].value)


@pytest.fixture(scope='module')
def room():
    """Eleven square metres of an apartment, and a dense sampling of the same surface."""
    scene = generate_apartment(3)

    def part(points_per_m2, seed):
        cloud = sample_surface(scene, points_per_m2, seed)
        inside = np.abs(cloud.points[:, :2] - corner[:2] - 2.5) < 1.7
        return cloud.select(inside.all(axis=1))

    corner = sample_surface(scene, 10, 0).points.min(axis=0)
    surface = part(400.0, 0)
    truth = ground_truth_of(SceneGraph(), surface, label_set=scene.label_set)
    return truth, part(4000.0, 9)


def voxelised(points, edge_m, *, means):
    """Return the mean of every voxel's points, or any one of them."""
    _, inverse = np.unique(compute_voxel_keys(points, edge_m), return_inverse=True)
    groups = pd.DataFrame(points).groupby(inverse)
    return (groups.mean() if means else groups.first()).to_numpy(np.float32)


@pytest.mark.full
@pytest.mark.parametrize('means', few([True, False], False))
def test_a_perfect_map_keeps_its_f_score_at_the_voxels_of_published_methods(room, means):
    truth, cloud = room
    at_2_cm = []
    for edge_m in (0.02, 0.05, 0.08):
        points = voxelised(cloud.points, edge_m, means=means)
        sparse = as_map(dense=DenseMap(points))
        context = SuiteContext('room', sparse, truth, device='cpu')
        found = figures(MapGeometrySuite(options={'normal_samples': 0}), context)
        raw = figures(
            MapGeometrySuite(options={'normal_samples': 0, 'distances': 'points'}), context
        )
        assert found['', 'f_score_0.05m', ''].value > 0.98, edge_m
        at_2_cm.append(found['', 'f_score_0.02m', ''].value)
        assert raw['', 'f_score_0.02m', ''].value < found['', 'f_score_0.02m', ''].value - 0.2
    # Points of voxels of 8 cm lie up to 16 cm apart, discs of 4 cm and 2 cm around reach 12 cm.
    assert at_2_cm == sorted(at_2_cm, reverse=True)
    assert at_2_cm == pytest.approx([0.99, 0.98, 0.92], abs=0.015)


def test_distances_between_points_are_those_of_the_straightforward_way(room):
    truth, cloud = room
    few = truth.surface.points[::40]
    there = cloud.points[::400]
    sparse = as_map(dense=DenseMap(there))
    small = replace(truth, surface=truth.surface.select(np.arange(0, len(truth.surface), 40)))
    found = figures(
        MapGeometrySuite(options={'distances': 'points'}),
        SuiteContext('room', sparse, small, device='cpu'),
    )
    apart = np.linalg.norm(few[:, None] - there[None], axis=2)
    assert found['', 'completeness_m', ''].value == pytest.approx(apart.min(axis=1).mean())
    assert found['', 'accuracy_m', ''].value == pytest.approx(apart.min(axis=0).mean())
    assert found['', 'recall_0.05m', ''].value == (apart.min(axis=1) <= 0.05).mean()


def test_a_hole_does_not_close_when_a_map_gets_sparser(context):
    truth = context.ground_truth
    away = np.linalg.norm(truth.surface.points - [2.0, 0.5, 0.0], axis=1)
    hole = away < 0.3
    gaps = []
    for step in (1, 2, 4):
        points = truth.surface.points[~hole][::step]
        holed = as_map(dense=DenseMap(points))
        found = figures(MapGeometrySuite(options={}), replace(context, semantic_map=holed))
        gaps.append(found['', 'recall_0.1m', ''].value)
    # What lies farther than 10 cm and the radius of a disc from its edge stays missing.
    missed = (away < 0.3 - 0.1 - POINT_RADIUS_M - 0.05).sum() / len(away)
    assert gaps[0] <= 1 - missed
    assert gaps == sorted(gaps, reverse=True)


SUITES = {
    'segmentation': OsmaSegmentationSuite(options={}),
    'geometry': MapGeometrySuite(options={}),
    'instances': InstancesSuite(options={}),
    'scene_graph': SceneGraphSuite(options={}),
    'openlex3d': OpenLex3DSuite(options={}),
}
NOTHING = np.zeros((0, 3), np.float32)


def of_nodes(semantic_map, **changes):
    nodes = tuple(replace(node, **changes) for node in semantic_map.graph.nodes)
    return replace(semantic_map, graph=replace(semantic_map.graph, nodes=nodes))


def of_points(semantic_map, **changes):
    return replace(semantic_map, dense=replace(semantic_map.dense, **changes))


LACKING = {
    'nothing': lambda full: full,
    'points': lambda full: replace(full, dense=None),
    'every point': lambda full: replace(full, dense=DenseMap(NOTHING)),
    'every point of known kinds': lambda full: replace(
        full,
        dense=DenseMap(NOTHING, labels=np.zeros(0, np.int32), instances=np.zeros(0, np.int32)),
    ),
    'every valid point': lambda full: of_points(
        full, valid=np.zeros(len(full.dense.points), bool)
    ),
    'labels': lambda full: of_nodes(of_points(full, labels=None), labels=()),
    'labels of points': lambda full: of_points(full, labels=None),
    'labels of nodes': lambda full: of_nodes(full, labels=()),
    'instances': lambda full: of_points(full, instances=None),
    'graph': lambda full: replace(full, graph=SceneGraph()),
    'relations': lambda full: replace(full, graph=SceneGraph(full.graph.nodes)),
    'boxes': lambda full: of_nodes(full, box=None),
    'boxes and instances': lambda full: of_nodes(of_points(full, instances=None), box=None),
    'attributes': lambda full: of_nodes(full, attributes=MappingProxyType({})),
    'everything': lambda full: SemanticMap(full.header),
}


@pytest.mark.parametrize('suite', SUITES)
@pytest.mark.parametrize('lacking', LACKING)
def test_a_map_without_a_part_has_the_same_figures_some_not_applicable(
    suite, lacking, context, perfect_map
):
    full = figures(SUITES[suite], context)
    lacking_map = LACKING[lacking](perfect_map)
    bare = figures(SUITES[suite], replace(context, semantic_map=lacking_map))
    overall = {key for key in full if not key[2]}
    assert overall <= bare.keys()
    for key, record in bare.items():
        assert record.applicable == (record.value is not None), key
        if key in full:
            assert record.higher_is_better == full[key].higher_is_better, key


@pytest.mark.parametrize('suite', SUITES)
@pytest.mark.parametrize('lacking', ['points', 'everything'])
def test_what_is_not_there_is_never_zero(suite, lacking, context, perfect_map):
    bare = replace(context, semantic_map=LACKING[lacking](perfect_map))
    found = figures(SUITES[suite], bare).values()
    assert found
    assert lacking == 'points' or not any(item.applicable for item in found)
    assert not [item.metric for item in found if item.value == 0.0 and item.higher_is_better]
