"""A run that is recorded, over real processes; its bag alone holds all there is to know."""

from pathlib import Path
from typing import Any

import pytest
from support.world.runs import PreparedScenes, small_config

from osmabench_ros.base.progress import silent


@pytest.mark.ros
@pytest.mark.gl
@pytest.mark.slow
def test_the_bag_of_a_lockstep_run_lacks_nothing(
    prepared: PreparedScenes, nodes: Any, tmp_path: Path
) -> None:
    from osmabench_ros.bringup.runner.matrix_runner import run_matrix
    from osmabench_ros.runs.config import parse_config
    from osmabench_ros.sequences.bag_reader import BagSequence
    from osmabench_ros.sequences.bags.bag import open_bag
    from osmabench_ros.sequences.bags.recording_report import read_report

    data = small_config(recording={'enabled': True})
    config = parse_config(data, 'test')
    prepared.put_into(tmp_path, data)
    report = run_matrix(config, tmp_path, nodes=nodes, progress=silent)
    assert report.passed, report
    (folder,) = (tmp_path / 'small').glob('*/bag')
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


@pytest.mark.ros
def test_a_bag_that_was_not_finished_fails_the_run_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from osmabench_ros.base.files import claim_folder, write_text
    from osmabench_ros.bringup.runner import one_run
    from osmabench_ros.bringup.runner.node_processes import NodeProcesses
    from osmabench_ros.bringup.spec.definition import check_bag, make_room_for_bag
    from osmabench_ros.errors import RunError
    from osmabench_ros.runs.config import parse_config
    from osmabench_ros.runs.identity import SceneKey
    from osmabench_ros.runs.plan import RunPlan, plan_runs
    from osmabench_ros.runs.prepare.preparation import Preparation
    from osmabench_ros.runs.results.report_model import RunReport, Status

    def done(plan: RunPlan) -> RunReport:
        return RunReport(run_id=plan.identity.run_id, status=Status.COMPLETE)

    config = parse_config(small_config(recording={'enabled': True}), 'test')
    (plan,) = plan_runs(config, {config.scenes[0]: SceneKey('d', 's', 3)}, tmp_path)
    with pytest.raises(RunError, match='was not recorded'):
        check_bag(plan)
    directory = plan.bag_directory
    claim_folder(tmp_path)
    write_text(
        directory / 'recording.json',
        '{"complete": false, "error": "no space left", "duration_s": 1, "bytes_written": 1, '
        '"files": 1, "topics": [], "frames_expected": 0, '
        '"frames_counted_by": "stamps", "lost": 0}',
    )
    with pytest.raises(RunError, match='is not complete: no space left'):
        check_bag(plan)
    # Whatever of the run is done already: no second look lets it pass.
    write_text(plan.report_file, '')
    monkeypatch.setattr(one_run, 'read_finished', done)
    for _ in range(2):
        report = one_run.run_one(plan, Preparation(), NodeProcesses(), silent)
        assert (report.status, 'is not complete' in report.error) == (Status.FAILED, True)
    make_room_for_bag(plan)
    assert not directory.exists()
    assert (directory.with_name('bag_interrupted_1') / 'recording.json').exists()
