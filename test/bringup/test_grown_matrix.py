"""A matrix that grows by a condition, a seed and a suite: only missing work is done."""

import pytest
from support.world.runs import repeatable, run_small, small_config

from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.preparation import list_expected_work

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(900)]

LESS = small_config(
    conditions=['baseline', 'camera'],
    mappers=[{'name': 'oracle'}, {'name': 'noisy_oracle'}],
    seeds={'method': [1]},
)
MORE = {**LESS, 'conditions': ['baseline', 'camera', 'velocity'], 'seeds': {'method': [1, 2]}}
SCORED = {**MORE, 'suites': [{'name': 'map_geometry'}, {'name': 'grounding'}]}


def run(out, config, nodes):
    """Run a matrix, and return what was shown."""
    shown = []
    report = run_small(config, out, nodes=nodes, progress=lambda text, _: shown.append(text))
    assert report.passed, report
    return shown


def runs_in(shown, *words):
    """Return the runs of which one of the words was said."""
    labelled = (line.partition('] ')[2].partition(': ') for line in shown)
    return {run_id for run_id, _, text in labelled if text.startswith(words)}


def expected(out, config):
    lines = list_expected_work(parse_config(config, 'test'), out)
    return dict(line.split(': ', 1) for line in lines if line.startswith('apartment'))


def maps_in(out):
    return {path.parts[-3]: path.stat().st_mtime_ns for path in out.glob('small/*/map/map.json')}


def left(work, *kinds):
    return [sum(text.startswith(kind) for text in work.values()) for kind in kinds]


@pytest.mark.full
def test_a_grown_matrix_does_what_is_missing_and_equals_one_that_was_run_at_once(
    prepared, nodes, tmp_path
):
    grown, at_once = tmp_path / 'grown', tmp_path / 'at_once'
    prepared.put_into(grown, LESS)
    assert len(runs_in(run(grown, LESS, nodes), 'map')) == 4
    before = maps_in(grown)
    assert len(before) == 4

    assert left(expected(grown, MORE), 'done', 'to do: prepare, map') == [4, 8]
    shown = run(grown, MORE, nodes)
    assert runs_in(shown, 'kept') == before.keys()
    assert runs_in(shown, 'map') == maps_in(grown).keys() - before.keys()
    assert len(runs_in(shown, 'map')) == 8
    assert {key: maps_in(grown)[key] for key in before} == before

    before = maps_in(grown)
    why = 'to do: evaluate, finish, since suites.grounding: absent -> {}'
    assert left(expected(grown, SCORED), why) == [12]
    truth = (
        grown / 'small' / 'shared' / 'apartment.seed_3.3' / 'ground_truth' / 'ground_truth.json'
    )
    made_ns = truth.stat().st_mtime_ns
    shown = run(grown, SCORED, nodes)
    assert runs_in(shown, 'kept', 'map', 'prepare: planning') == set()
    assert runs_in(shown, 'evaluate') == before.keys()
    assert (maps_in(grown), truth.stat().st_mtime_ns) == (before, made_ns)
    assert any('adding the questions of more suites' in line for line in shown)

    run(at_once, SCORED, nodes)
    assert repeatable(grown / 'small') == repeatable(at_once / 'small')
    assert left(expected(at_once, SCORED), 'done') == [12]
