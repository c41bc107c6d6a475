import sys

import pytest
from metrics.test_trajectory import ESTIMATE, TRUTH

from osmabench_ros.errors import MetricError, MissingDependencyError
from osmabench_ros.metrics.trajectory import DeltaInterval, DeltaUnit, TrajectoryAlignment
from osmabench_ros.metrics.trajectory_records import (
    ALIGNED,
    SUITE,
    TrajectorySettings,
    evo_figures,
    score_trajectory,
)


@pytest.mark.parametrize('kind', TrajectoryAlignment)
@pytest.mark.parametrize('unit', DeltaUnit)
def test_the_whole_way_gives_the_figures_of_evo(kind, unit) -> None:
    pytest.importorskip('evo', reason='evo is not installed')
    settings = TrajectorySettings(kind, interval=DeltaInterval(2, unit))
    expected = evo_figures(TRUTH, ESTIMATE, settings)
    suite = SUITE if kind is TrajectoryAlignment.NONE else SUITE + ALIGNED
    records = score_trajectory(TRUTH, ESTIMATE, settings).records
    ours = {record.metric: record.value for record in records if record.suite == suite}
    compared = expected.keys() & ours.keys()
    # rmse, mean, median, std, min, max of two parts of two errors; evo knows no seconds.
    assert len(compared) == (12 if unit is DeltaUnit.SECONDS else 24)
    for name in compared:
        assert ours[name] == pytest.approx(expected[name], abs=1e-8), name


def test_what_evo_refuses_is_an_error_of_ours() -> None:
    pytest.importorskip('evo', reason='evo is not installed')
    with pytest.raises(MetricError, match='evo: found no matching timestamps'):
        evo_figures(TRUTH, ESTIMATE, TrajectorySettings(offset_s=1e6))


def test_without_evo_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, 'evo', None)
    with pytest.raises(MissingDependencyError, match='install .evo>='):
        evo_figures(TRUTH, ESTIMATE, TrajectorySettings())
