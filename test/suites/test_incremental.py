import pytest
from support.figures import figure_of

from osmabench_ros.metrics.over_time import ScoresAtTime, make_over_time_records
from osmabench_ros.suites.map_geometry import MapGeometrySuite
from osmabench_ros.suites.osma_segmentation import OsmaSegmentationSuite


def test_scores_grow_with_the_map_and_early_quality_counts(context, with_map):
    x = context.semantic_map.dense.points[:, 0]
    suites = [MapGeometrySuite(options={}), OsmaSegmentationSuite(options={})]

    def score(seen):
        here = with_map(valid=x < seen)
        records = (record for suite in suites for record in suite.evaluate(here))
        return ScoresAtTime(10 * seen, 2.0 * seen, tuple(records))

    moments = [score(seen) for seen in (1, 2, 4)]
    coverage = [figure_of(moment.metrics, 'coverage') for moment in moments]
    assert coverage == sorted(coverage)
    assert coverage[-1] == 1.0
    found = {
        record.metric: record for record in make_over_time_records(moments) if not record.mode
    }
    expected = (10 * coverage[0] + 20 * coverage[1]) / 40
    assert found['coverage_over_frames'].value == pytest.approx(expected)
    assert found['coverage_over_time'].value == pytest.approx(expected)
    assert found['coverage_frames_until_90'].value == 40
    assert found['coverage_seconds_until_90'].value == 8.0
    assert not found['coverage_seconds_until_90'].higher_is_better
    assert 'accuracy_m_over_frames' not in found
    assert moments[0].metrics[0].suite == 'map_geometry'


def test_a_run_without_snapshots_has_nothing_to_tell():
    assert make_over_time_records([]) == []
