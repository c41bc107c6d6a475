"""`compat` of OpenLex3D against the published code, on a small scene made here."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from osmabench_ros.maps.export import export_openlex3d
from osmabench_ros.maps.semantic_map import (
    DenseMap,
    FeatureSpace,
    MapHeader,
    Provenance,
    SemanticMap,
)
from osmabench_ros.metrics.tiers import TieredObject, tiers_by_id, write_tiers
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.openlex3d import OpenLex3DSuite
from osmabench_ros.suites.suite import SuiteContext

VARIABLE = 'OSMABENCH_OPENLEX3D'
"""Names a clone of github.com/openlex3d/openlex3d."""

OBJECTS = 14
WORDS = [f'word {number}' for number in range(60)]
TOP_N, TOP_K = (1, 5), 10

pytestmark = pytest.mark.skipif(VARIABLE not in os.environ, reason=f'{VARIABLE} is not set')


def encode(space: FeatureSpace | None, texts: Sequence[str]) -> np.ndarray:
    """Return a direction for each text, the same for the same text."""
    rows = [np.random.default_rng(list(text.encode())).normal(size=24) for text in texts]
    return np.array(rows, np.float32)


@pytest.fixture(scope='module')
def upstream() -> SimpleNamespace:
    sys.path.insert(0, os.environ[VARIABLE])
    pytest.importorskip('faiss')
    from openlex3d.core import align_masks, categories, cosine_similarity, evaluation, io, metric
    from openlex3d.models.base import VisualLanguageEncoder
    from openlex3d.scripts import evaluate_queries

    class Encoder(VisualLanguageEncoder):
        def compute_text_features(self, input_text: list[str], batch_size: int = 64) -> Any:
            return encode(None, input_text)

    cosine_similarity.load_model = lambda config: Encoder()
    align_masks.use_gpu = False
    return SimpleNamespace(
        align=align_masks,
        categories=categories,
        evaluation=evaluation,
        io=io,
        metric=metric,
        queries=evaluate_queries,
        encoder=Encoder(),
    )


def surface() -> LabelledCloud:
    """Fourteen tiles, three quarters of a metre wide, side by side."""
    random = np.random.default_rng(1)
    ids = np.repeat(np.arange(1, OBJECTS + 1), random.integers(120, 480, OBJECTS))
    points = random.random((len(ids), 3)) * [0.75, 0.75, 0.02]
    points[:, 0] += 0.75 * ids
    normals = np.tile(np.array([[0, 0, 1]], np.float32), (len(ids), 1))
    return LabelledCloud(points.astype(np.float32), np.zeros(len(ids), np.int32), ids, normals)


def mapped(truth: LabelledCloud) -> SemanticMap:
    """Return a map with errors: noise, a seventh of the points lacks, masks that spill over."""
    random = np.random.default_rng(2)
    kept = random.random(len(truth.points)) > 1 / 7
    points = truth.points[kept] + random.normal(0, 0.004, (kept.sum(), 3)).astype(np.float32)
    ids = truth.instances[kept]
    points[ids == 5, 2] += np.float32(0.2)
    # The middle of a voxel with two points is as near to both: they bear one feature.
    cells, first, cell = np.unique(
        np.floor(points / 0.05), axis=0, return_index=True, return_inverse=True
    )
    owner = ids[first]
    spilt = random.random(len(cells)) < 0.15
    owner[spilt] = 1 + owner[spilt] % OBJECTS
    owner[(owner == 3) & (cells[:, 1] > 11)] = OBJECTS + 1
    ids = owner[cell.ravel()].astype(np.int32)
    named = [f'word {1 + row % OBJECTS}' for row in range(OBJECTS + 1)]
    vectors = encode(None, named) + random.normal(0, 1.2, (OBJECTS + 1, 24)).astype(np.float32)
    space = FeatureSpace('clip', vectors.astype(np.float32), 'ViT-H-14')
    nodes = tuple(
        SceneNode(row + 1, feature_row=row, feature_space='clip') for row in range(OBJECTS + 1)
    )
    dense = DenseMap(points, instances=ids, feature_rows=ids - 1, feature_space='clip')
    header = MapHeader(Provenance('test'))
    return SemanticMap(header, SceneGraph(nodes), dense, feature_spaces={'clip': space})


def words_of(number: int) -> TieredObject:
    """Return names of an object; the last is a part of the building, the one before has none."""
    if number == OBJECTS:
        return TieredObject(number, ('floor', 'word 1'))
    synonyms = () if number == OBJECTS - 1 else (f'word {number}', f'word {20 + number // 2}')
    depictions = (f'word {35 + number}',) if number % 3 == 0 else ()
    similar = (f'word {47 + number % 12}', 'not asked for') if number % 2 else ()
    return TieredObject(number, synonyms, depictions, similar, (1 + number % OBJECTS,))


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('openlex3d')
    write_tiers(tiers_by_id(map(words_of, range(1, OBJECTS + 1))), folder / 'gt_categories.json')
    (folder / 'prompt_list.txt').write_text('\n'.join(WORDS))
    asked = {f'word {n}': [2 * (n - 20), 2 * (n - 20) + 1] for n in range(21, 27)}
    queries = {'level0': {**asked, 'word 3': [3], 'word 58': [99]}, 'level1': {'word 4': [4, 5]}}
    (folder / 'gt_categories_query_to_object_mapping_all.json').write_text(json.dumps(queries))
    return folder


@pytest.fixture(scope='module', params=['per_mask', 'global'])
def figures(
    request: pytest.FixtureRequest, ground_truth: GroundTruth, folder: Path
) -> dict[str, float | None]:
    truth = surface()
    context = SuiteContext(
        'tiles',
        mapped(truth),
        replace(ground_truth, surface=truth, unseen=truth.select(np.zeros(len(truth), bool))),
        device='cpu',
        text_encoder=encode,
    )
    suite = OpenLex3DSuite(
        options={
            'tiers': folder / 'gt_categories.json',
            'prompts': folder / 'prompt_list.txt',
            'queries': folder / 'gt_categories_query_to_object_mapping_all.json',
            'mask_alignment': request.param,
            'top_n': TOP_N,
        }
    )
    found = {r.metric: r.value for r in suite.evaluate(context) if r.mode == 'compat'}
    return {**found, 'alignment': request.param}


def published(
    upstream: SimpleNamespace, folder: Path, prediction: Path, alignment: str
) -> dict[str, float]:
    """Return the figures of the published code, with the settings that it comes with."""
    import open3d as o3d

    truth = surface()
    cloud = o3d.t.geometry.PointCloud(truth.points)
    labels = upstream.categories.CategoriesHandler(str(folder / 'gt_categories.json'))
    excluded = ['wall', 'floor', 'ceiling', 'doorframe', 'ledge', 'windowledge']
    mapped_cloud, features = upstream.io.load_predicted_features(str(prediction))
    logits = upstream.evaluation.compute_feature_to_prompt_similarity(
        upstream.encoder, features, WORDS
    )
    scene = {
        'pred_cloud': mapped_cloud,
        'gt_cloud': cloud,
        'gt_ids': truth.instances,
        'gt_labels_handler': labels,
        'excluded_labels': excluded,
    }
    found = {}
    for n in TOP_N:
        best = upstream.evaluation.get_label_from_logits(logits, WORDS, method='topn', topn=n)
        shares, *_ = upstream.metric.category_frequency_topn(pred_labels=best, **scene)
        found.update({f'top{n}_{name}': share for name, share in shares.items()})
    ranking = upstream.metric.set_based_ranking(logits=logits, prompt_list=WORDS, **scene)
    found.update({f'ranking {name}': value for name, value in ranking.items()})
    points, masks, vectors = upstream.io.load_all_predictions(prediction.parent, prediction.name)
    config = SimpleNamespace(
        paths=SimpleNamespace(openlex_gt_path=folder.parent),
        dataset=SimpleNamespace(name='', scene='tiles'),
        evaluation=SimpleNamespace(query_level='all', criteria='top_k', top_k=TOP_K),
        masks=SimpleNamespace(alignment_mode=alignment, alignment_threshold=0.001),
    )
    asked = upstream.io.load_query_json(config, folder.name)
    true = upstream.queries.create_gt_instances(
        upstream.queries.get_all_gt_mask_indices(truth.instances), asked
    )
    aligned = upstream.align.get_pred_mask_indices_gt_aligned(
        config.masks, points, masks, truth.points
    )
    retrieved = upstream.queries.create_pred_instances(
        config.evaluation, vectors, aligned, asked, None
    )
    matches, _ = upstream.queries.assign_instances_for_scene('tiles', true, retrieved)
    scores, _ = upstream.metric.compute_ap(matches)
    averages = upstream.metric.compute_ap_averages(scores, factor=1)
    rank, _ = upstream.metric.compute_query_inverse_rank(matches, 0.25)
    names = {'map': 'all_ap', 'ap50': 'all_ap_50%', 'ap25': 'all_ap_25%'}
    found.update({name: averages[theirs] for name, theirs in names.items()})
    return {**found, 'inverse_rank': rank}


OURS = {
    'synonyms': 'synonym', 'depictions': 'depiction', 'vis_sim': 'visually_similar',
    'ranking overall': 'set_ranking',
}  # fmt: skip


def name_here(theirs: str) -> str:
    """Return what the suite calls a figure of the published code."""
    if theirs.startswith('top'):
        head, _, category = theirs.partition('_')
        return f'{head}_{OURS.get(category, category)}'
    return OURS.get(theirs, theirs.replace('ranking ', 'set_ranking_'))


def test_compat_gives_the_figures_of_the_published_code(
    upstream: SimpleNamespace, figures: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    prediction = tmp_path / 'tiles'
    export_openlex3d(mapped(surface()), prediction)
    theirs = published(upstream, folder, prediction, figures['alignment'])
    mine = {name: figures[name_here(name)] for name in theirs}
    # What no object has a figure for is NaN there and not applicable here.
    ours = {name: np.nan if value is None else value for name, value in mine.items()}
    assert len(theirs) == 24
    for name, value in theirs.items():
        print(f'{name}: {value:.15f}, here {ours[name]:.15f}')
    assert ours == pytest.approx(theirs, abs=1e-12, nan_ok=True)
    assert 0.1 < theirs['top1_synonyms'] < 0.9
    assert 0.01 < theirs['map'] < 0.9
