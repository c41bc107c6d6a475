"""Text features reach the suites that ask for them."""

from dataclasses import replace

import pytest
from support.figures import figure_of
from support.libraries import needs_embedder
from support.world import maps

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, format_tum
from osmabench_ros.maps.semantic_map import transform_map
from osmabench_ros.metrics.tiers import TieredLabels, TieredObject, write_tiers
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.runs.evaluation import (
    TRUE_TRAJECTORY,
    EvaluationInputs,
    evaluate_map,
    identify_unnamed_run,
)
from osmabench_ros.semantics.scene_graph import ScoredLabel

pytestmark = pytest.mark.xdist_group('sentence embedder')

UPWARDS = Similarity(Pose.from_yaw(0.0, (0.0, 0.0, 50.0)))


def evaluated(directory, semantic_map, suite, **files):
    folders = maps.write_inputs(directory, semantic_map)
    inputs = EvaluationInputs(
        identify_unnamed_run(), *folders, directory / 'out', text_features=files, device='cpu'
    )
    return evaluate_map(inputs, [suite])


@pytest.mark.parametrize('swapped', [False, True])
def test_openlex3d_gets_the_text_of_the_maps_own_encoder(swapped, tmp_path):
    words = {'chair': [1.0, 0, 0], 'rug': [0, 1.0, 0], 'table': [0, 0, 1.0]}
    if swapped:
        words = dict(zip(words, reversed(words.values()), strict=True))
    tiers = TieredLabels({i: TieredObject(i, (word,)) for i, word in enumerate(words, start=1)})
    write_tiers(tiers, tmp_path / 'tiers.json')
    report = evaluated(
        tmp_path,
        maps.featured_map(),
        SuiteConfig(name='openlex3d', options={'tiers': str(tmp_path / 'tiers.json')}),
        ToyCLIP=maps.write_text_features(tmp_path / 'toys.npy', words),
    )
    found = figure_of(report.metrics, 'top1_synonym', mode='strict')
    assert found == pytest.approx(1 / 3 if swapped else 1.0)
    assert report.encoders['prompts'] == 'ToyCLIP/toys from file toys.npy'


@needs_embedder
def test_a_map_of_captions_alone_is_scored(tmp_path):
    report = evaluated(tmp_path, maps.captioned_map(), SuiteConfig(name='osma_segmentation'))
    for mode in ('strict', 'compat'):
        assert figure_of(report.metrics, 'macc', mode=mode) == 1.0
    # Top-k accuracies follow the rankings of the nodes.
    assert figure_of(report.metrics, 'top3_accuracy', mode='strict') == 1.0
    encoder = 'all-MiniLM-L6-v2 on captions'
    assert report.encoders == {'labels': encoder, 'node_labels': encoder}


@needs_embedder
def test_labels_alike_in_meaning_count_by_embedding(tmp_path):
    source = maps.labelled_map()
    nodes = [
        replace(node, labels=(ScoredLabel(f'{node.label} seat'),)) if node.id == 1 else node
        for node in source.graph.nodes
    ]
    renamed = replace(source, graph=replace(source.graph, nodes=tuple(nodes)))
    report = evaluated(tmp_path, renamed, SuiteConfig(name='scene_graph'))
    assert figure_of(report.metrics, 'label_accuracy', mode='strict') == 0.5
    assert figure_of(report.metrics, 'label_accuracy_embedding', mode='strict') == 1.0
    assert report.encoders == {'similarity': 'all-MiniLM-L6-v2'}


def test_a_suite_that_is_named_twice_is_refused_before_anything_is_read(tmp_path):
    nowhere = EvaluationInputs(identify_unnamed_run(), *[tmp_path / 'nothing'] * 3)
    with pytest.raises(ConfigError, match=r'suite "instances" is there twice'):
        evaluate_map(nowhere, [SuiteConfig(name='instances')] * 2)


@pytest.mark.parametrize('points', [True, False])
def test_a_map_outside_the_scene_is_scored_with_a_remark(tmp_path, points):
    far = transform_map(maps.labelled_map(), UPWARDS, 'world')
    far = far if points else replace(far, dense=None)
    [remark] = evaluated(tmp_path, far, SuiteConfig(name='scene_graph')).remarks
    assert remark.startswith('only 0% of the map is within the true scene: the map is x ')
    assert 'import it again with --world, --metres-per-unit or --pose' in remark


def test_a_map_in_its_place_is_scored_without_a_remark(tmp_path):
    assert evaluated(tmp_path, maps.labelled_map(), SuiteConfig(name='scene_graph')).remarks == ()


def test_poses_of_a_map_are_scored_against_the_true_ones_beside_it(tmp_path):
    poses = [(i * 10**9, Pose.from_yaw(0.0, (i, i * i, 0.0))) for i in range(4)]
    true = StampedTrajectory.from_poses(poses)
    own = true.transform(UPWARDS)
    (tmp_path / TRUE_TRAJECTORY).write_text(format_tum(true))
    suite = SuiteConfig(name='map_trajectory')
    report = evaluated(tmp_path, replace(maps.labelled_map(), trajectory=own), suite)
    found = {item.metric: item.value for item in report.metrics}
    assert found['ape_translation_rmse_m'] == pytest.approx(50.0)
    assert found['aligned_ape_translation_rmse_m'] == pytest.approx(0.0, abs=1e-6)
