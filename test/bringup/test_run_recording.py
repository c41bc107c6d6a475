"""A run that is recorded and scored on the way, over real processes."""

import os

import pytest
from support.figures import figure_of
from support.world.runs import plans_of, run_small, small_config

from osmabench_ros.base.files import read_json
from osmabench_ros.base.progress import silent

pytestmark = pytest.mark.ros


@pytest.fixture(scope='module')
def run(prepared, nodes, tmp_path_factory):
    """Return the folder and the report of a run."""
    from osmabench_ros.bringup.isolation import make_isolated_environment

    out = tmp_path_factory.mktemp('recorded')
    # Smaller images resolve no surface, and no surface can be covered.
    config = small_config(
        camera={'width': 160, 'height': 120},
        evaluation={'map_every_frames': 2},
        recording={'enabled': True},
    )
    # Libraries may add variables of theirs.
    before = {name: os.environ.get(name) for name in make_isolated_environment(0)}
    report = run_small(config, out, prepared=prepared, nodes=nodes)
    assert {name: os.environ.get(name) for name in before} == before, 'a run changes no variable'
    assert report.passed, report
    [folder] = (out / 'small').glob('apartment*')
    return folder, report


@pytest.mark.gl
@pytest.mark.slow
def test_the_bag_of_a_lockstep_run_lacks_nothing(run):
    from osmabench_ros.sequences.bags.bag import open_bag
    from osmabench_ros.sequences.bags.recording_report import read_report
    from osmabench_ros.sequences.recorded import BagSequence

    folder, report = run[0] / 'bag', run[1]
    recording = read_report(folder)
    assert (recording.complete, recording.lost) == (True, 0)
    assert recording.frames_expected == 5
    with open_bag(folder) as bag:
        assert bag.cut_off == ''
        counts = {item.topic: item.message_count for item in bag.connections}
        (info,) = bag.messages(['/run_info'])
        assert info.deserialise().run_id == report.runs[0].run_id
        maps = [item.deserialise() for item in bag.messages(['/semantic_map'])]
    assert maps[-1].is_final
    for topic in ('/lighting', '/label_info', '/run_state', '/semantic_map_chunk', '/frame_ack'):
        assert counts[topic] > 0, topic
    assert len(BagSequence(folder)) == 5


@pytest.mark.gl
@pytest.mark.slow
def test_the_maps_on_the_way_are_scored(run):
    from osmabench_ros.runs.evaluation import ReportOverTime

    folder, report = run
    growth = ReportOverTime.model_validate(read_json(folder / 'growth.json'))
    assert [moment.frames for moment in growth.moments] == [2, 4, 5]
    assert [moment.time_s for moment in growth.moments] == [1.0, 3.0, 4.0]

    coverage = [figure_of(moment.metrics, 'coverage') for moment in growth.moments]
    assert coverage == sorted(coverage)
    assert coverage[0] > 0.0
    assert coverage[-1] == figure_of(report.metrics, 'coverage')


def test_a_bag_that_was_not_finished_fails_the_run_again_and_again(tmp_path, monkeypatch):
    from osmabench_ros.base.files import claim_folder, write_json, write_text
    from osmabench_ros.bringup.definition import check_bag, make_room_for_bag
    from osmabench_ros.bringup.runner import one_run
    from osmabench_ros.bringup.runner.node_processes import NodeProcesses
    from osmabench_ros.errors import RunError
    from osmabench_ros.runs.config import parse_config
    from osmabench_ros.runs.preparation import Preparation
    from osmabench_ros.runs.report_model import RunReport, Status

    def done(plan):
        return RunReport(run_id=plan.identity.run_id, status=Status.COMPLETE)

    config = parse_config(small_config(recording={'enabled': True}), 'test')
    (plan,) = plans_of(config, tmp_path)
    with pytest.raises(RunError, match='was not recorded'):
        check_bag(plan)
    directory = plan.bag_directory
    claim_folder(tmp_path)
    recording = {
        'complete': False, 'error': 'no space left', 'duration_s': 1, 'bytes_written': 1,
        'files': 1, 'topics': [], 'frames_expected': 0, 'frames_counted_by': 'stamps', 'lost': 0,
    }  # fmt: skip
    write_json(directory / 'recording.json', recording)
    with pytest.raises(RunError, match='is not complete: no space left'):
        check_bag(plan)
    # Whatever of the run is done already: no second look lets it pass.
    write_text(plan.report_file, '')
    monkeypatch.setattr(one_run.run_manifest, 'read_finished', done)
    for _ in range(2):
        report = one_run.run_one(plan, Preparation(), NodeProcesses(), silent)
        assert (report.status, 'is not complete' in report.error) == (Status.FAILED, True)
    make_room_for_bag(plan)
    assert not directory.exists()
    assert (directory.with_name('bag_interrupted_1') / 'recording.json').exists()
