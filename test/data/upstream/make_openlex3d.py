"""Runs OpenLex3D's code on the stored tiles and writes its numbers; README.md says how."""

import json
import math
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import open3d as o3d
from support import upstream_tiles

from osmabench_ros.maps.export import export_openlex3d

TOP_K = 10
EXCLUDED = ['wall', 'floor', 'ceiling', 'doorframe', 'ledge', 'windowledge']


def load_upstream(clone):
    sys.path.insert(0, clone)
    from openlex3d.core import align_masks, categories, cosine_similarity, evaluation, io, metric
    from openlex3d.models.base import VisualLanguageEncoder
    from openlex3d.scripts import evaluate_queries

    class Encoder(VisualLanguageEncoder):
        def compute_text_features(self, input_text, batch_size=64):
            return upstream_tiles.encode(None, input_text)

    cosine_similarity.load_model = lambda config: Encoder()
    align_masks.use_gpu = False
    return SimpleNamespace(
        align=align_masks, categories=categories, evaluation=evaluation, io=io, metric=metric,
        queries=evaluate_queries, encoder=Encoder(),
    )  # fmt: skip


def compute_metrics(upstream, prediction, alignment):
    """Return the published code's metrics with the settings it comes with."""
    truth, words = upstream_tiles.true_surface(), upstream_tiles.PROMPTS.read_text().split('\n')
    mapped_cloud, features = upstream.io.load_predicted_features(str(prediction))
    logits = upstream.evaluation.compute_feature_to_prompt_similarity(
        upstream.encoder, features, words
    )
    scene = {
        'pred_cloud': mapped_cloud,
        'gt_cloud': o3d.t.geometry.PointCloud(truth.points),
        'gt_ids': truth.instances,
        'gt_labels_handler': upstream.categories.CategoriesHandler(str(upstream_tiles.TIERS)),
        'excluded_labels': EXCLUDED,
    }
    results = {}
    for n in upstream_tiles.TOP_N:
        best = upstream.evaluation.get_label_from_logits(logits, words, method='topn', topn=n)
        fractions, *_ = upstream.metric.category_frequency_topn(pred_labels=best, **scene)
        results.update({f'top{n}_{name}': value for name, value in fractions.items()})
    ranking = upstream.metric.set_based_ranking(logits=logits, prompt_list=words, **scene)
    results.update({f'ranking {name}': value for name, value in ranking.items()})
    points, masks, vectors = upstream.io.load_all_predictions(prediction.parent, prediction.name)
    config = SimpleNamespace(
        paths=SimpleNamespace(openlex_gt_path=upstream_tiles.FOLDER.parent),
        dataset=SimpleNamespace(name='', scene='tiles'),
        evaluation=SimpleNamespace(query_level='all', criteria='top_k', top_k=TOP_K),
        masks=SimpleNamespace(alignment_mode=alignment, alignment_threshold=0.001),
    )
    asked = upstream.io.load_query_json(config, upstream_tiles.FOLDER.name)
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
    results.update({name: averages[theirs] for name, theirs in names.items()})
    results['inverse_rank'] = rank
    return {name: None if math.isnan(value) else float(value) for name, value in results.items()}


if __name__ == '__main__':
    code = load_upstream(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        prediction = Path(folder, 'tiles')
        export_openlex3d(upstream_tiles.map_with_errors(), prediction)
        results = {
            mode: compute_metrics(code, prediction, mode) for mode in upstream_tiles.ALIGNMENTS
        }
    upstream_tiles.RESULTS.write_text(json.dumps(results, indent=1) + '\n')
