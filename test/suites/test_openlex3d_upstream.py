"""`compat` of OpenLex3D against numbers of the published code (test/data/upstream)."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support import upstream_tiles

from osmabench_ros.suites.openlex3d import OpenLex3DSuite
from osmabench_ros.suites.suite import SuiteContext

OURS = {
    'synonyms': 'synonym', 'depictions': 'depiction', 'vis_sim': 'visually_similar',
    'ranking overall': 'set_ranking',
}  # fmt: skip


def metric_name(theirs):
    """Return the suite's name of a metric of the published code."""
    if theirs.startswith('top'):
        head, _, category = theirs.partition('_')
        return f'{head}_{OURS.get(category, category)}'
    return OURS.get(theirs, theirs.replace('ranking ', 'set_ranking_'))


@pytest.mark.parametrize('alignment', upstream_tiles.ALIGNMENTS)
def test_compat_equals_the_published_code(alignment, ground_truth):
    truth = upstream_tiles.true_surface()
    context = SuiteContext(
        'tiles',
        upstream_tiles.map_with_errors(),
        replace(ground_truth, surface=truth, unseen=truth.select(np.zeros(len(truth), bool))),
        device='cpu',
        text_encoder=upstream_tiles.encode,
    )
    files = {
        'tiers': upstream_tiles.TIERS,
        'prompts': upstream_tiles.PROMPTS,
        'queries': upstream_tiles.QUERIES,
    }
    suite = OpenLex3DSuite(
        options={**files, 'mask_alignment': alignment, 'top_n': upstream_tiles.TOP_N}
    )
    ours = {r.metric: r.value for r in suite.evaluate(context) if r.mode == 'compat'}
    theirs = json.loads(upstream_tiles.RESULTS.read_text())[alignment]
    assert len(theirs) == 24
    # A metric without any object is NaN there (null in the file) and not applicable here.
    assert [name for name, value in theirs.items() if value is None] == [
        'ranking secondary_overshooting'
    ]
    assert {name: ours[metric_name(name)] for name in theirs} == pytest.approx(theirs, abs=1e-12)
    assert 0.1 < theirs['top1_synonyms'] < 0.9
    assert 0.01 < theirs['map'] < 0.9
