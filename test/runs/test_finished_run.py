"""Evaluation of a run from its files, and again when it is finished."""

import os
import re
import shutil
from collections import deque
from dataclasses import replace
from unittest.mock import create_autospec

import pytest
from support import scripted_model
from support.loopback_models import LoopbackModels, Misstep
from support.world.maps import ground_truth, labelled_map, write_inputs
from support.world.runs import matrix_config, plans_of

from osmabench_ros.base.files import MARKER, claim_folder, write_json, write_text
from osmabench_ros.base.strict import read_model
from osmabench_ros.errors import IncompleteError, RunError
from osmabench_ros.maps.storage import write_map
from osmabench_ros.runs import run_manifest
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.runs.evaluation import EvaluationInputs, EvaluationJob, evaluate_run
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.report_model import RunReport, Status, without_classes
from osmabench_ros.sequences.ground_truth import write_ground_truth
from osmabench_ros.suites.map_geometry import MapGeometrySuite
from osmabench_ros.vqa.question_files import read_complete
from osmabench_ros.vqa.questions import Answer

RUN = 'd.s.baseline.oracle.opengl.3'


def append(path):
    with path.open('ab') as file:
        file.write(b' ')


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


CHANGES = {
    'report': (f'{RUN}/report.json', append, 'report.json'),
    'no report': (f'{RUN}/report.json', remove, 'report.json'),
    'growth': (f'{RUN}/growth.json', append, 'growth.json'),
    'map': (f'{RUN}/map/cloud.ply', append, f'{RUN}/map'),
    'part of a map': (f'{RUN}/map/cloud.ply', remove, f'{RUN}/map'),
    'no map': (f'{RUN}/map', remove, f'{RUN}/map'),
    'truth': ('shared/d.s.3/ground_truth/surface_points.npy', append, 'd.s.3/ground_truth'),
    'questions': ('shared/d.s.3/questions.jsonl', append, 'd.s.3/questions.jsonl'),
}


@pytest.fixture
def done(tmp_path):
    """A run as the runner leaves it."""
    config = matrix_config(scenes=[{'reference': 'apartment', 'seed': 3}])
    [plan] = plans_of(config, tmp_path / 'small')
    claim_folder(plan.root)
    shared = plan.shared_directory
    write_ground_truth(ground_truth(), shared / 'ground_truth')
    write_text(shared / 'questions.jsonl', '')
    write_json(plan.directory / 'manifest.json', {'run_id': RUN})
    write_map(labelled_map(), plan.map_directory)
    evaluate_run(EvaluationInputs.of_plan(plan), [SuiteConfig(name='osma_segmentation')])
    write_text(plan.directory / 'growth.json', '{}')
    run_manifest.finish_run(plan)
    return plan


def test_what_is_as_it_was_counts(done):
    before = {path: path.read_bytes() for path in done.root.rglob('*') if path.is_file()}
    assert run_manifest.read_finished(done).run_id == RUN
    run_manifest.finish_run(done)
    assert {path: path.read_bytes() for path in done.root.rglob('*') if path.is_file()} == before


@pytest.mark.parametrize('change', CHANGES)
def test_what_has_changed_is_named_and_counts_no_more(change, done):
    file, alter, named = CHANGES[change]
    alter(done.root / file)
    words = f'run {RUN} is done, but has changed since: .*{re.escape(named)}; restore .* --fresh'
    with pytest.raises(RunError, match=words):
        run_manifest.read_finished(done)


def test_a_report_of_something_else_is_told(done):
    write_json(done.directory / 'manifest.json', {})
    write_json(done.report_file, {'run_id': RUN})
    with pytest.raises(
        RunError, match=r'report.json is malformed: .*: Field required; restore it'
    ):
        run_manifest.read_finished(done)


def test_the_figures_of_no_single_class_lie_beside_the_report(done):
    whole = read_model(RunReport, done.report_file)
    assert run_manifest.has_metrics(done.directory)
    noted = read_model(RunReport, done.directory / run_manifest.METRICS)
    assert noted == without_classes(whole)
    of_classes = [item for item in whole.metrics if item.class_name]
    assert of_classes
    assert len(noted.metrics) == len(whole.metrics) - len(of_classes) > 0


def test_figures_of_an_earlier_report_count_no_more(done):
    noted = (done.directory / run_manifest.METRICS).stat().st_mtime_ns
    os.utime(done.report_file, ns=(noted + 1, noted + 1))
    assert not run_manifest.has_metrics(done.directory)
    run_manifest.finish_run(done)
    assert run_manifest.has_metrics(done.directory)


SUITES = [
    SuiteConfig(name='map_geometry'),
    SuiteConfig(name='exact_questions', options={'count': 100}),
]


def inputs(folder):
    identity = RunIdentity(SceneKey('test', 'room', 0), 'baseline', 'faultless', 'none')
    map_directory, truth = write_inputs(folder, labelled_map())
    return EvaluationInputs(identity, map_directory, truth, folder / 'out', device='cpu')


def test_progress_names_suites_counts_questions_and_never_goes_back(tmp_path):
    reported = []
    evaluate_run(inputs(tmp_path), SUITES, progress=lambda *news: reported.append(news))
    texts, fractions = zip(*reported, strict=True)
    assert fractions == tuple(sorted(fractions))
    assert (texts[0], fractions[0]) == ('reading the map', 0.0)
    assert (texts[-1], fractions[-1]) == ('writing the report', 1.0)
    asked = sum(1 for _ in (tmp_path / 'out/vqa/questions.jsonl').open())
    answered = [text for text in texts if text.startswith('exact_questions: answered')]
    assert answered[0] == f'exact_questions: answered 0 of {asked} questions'
    assert answered[-1] == f'exact_questions: answered {asked} of {asked} questions'
    assert fractions[texts.index(answered[0])] == pytest.approx(0.5)


@pytest.mark.parametrize('allowed', [False, True])
def test_a_partial_map_is_marked_and_passes_only_where_that_is_allowed(tmp_path, allowed):
    whole = labelled_map()
    header = replace(whole.header, complete=False, remark='cut off')
    partial = replace(inputs(tmp_path), allow_partial=allowed)
    write_map(replace(whole, header=header), tmp_path / 'partial')
    report = evaluate_run(replace(partial, map_directory=tmp_path / 'partial'), SUITES[:1])
    assert (report.map_complete, report.remarks) == (False, ('the map is partial: cut off',))
    faults = report.failed_requirements
    assert len(faults) == (0 if allowed else 1)
    assert all('is partial' in fault for fault in faults)


@pytest.mark.parametrize('stage', ['reading the map', 'map_geometry: ', 'answered 20', 'writing'])
def test_an_evaluation_that_is_stopped_leaves_nothing(stage, tmp_path):
    source = inputs(tmp_path)
    jobs = []

    def work(progress):
        def watched(text, fraction):
            if stage in text:
                jobs[0].cancel()
            progress(text, fraction)

        return evaluate_run(source, SUITES, progress=watched)

    jobs.append(EvaluationJob(work, lambda _job: None))
    jobs[0].start()
    jobs[0].join(60.0)
    assert jobs[0].cancelled
    assert jobs[0].report is None
    assert {path.name for path in source.output_directory.rglob('*')} <= {MARKER}


def test_a_server_that_fails_keeps_the_other_figures_and_the_next_evaluation_goes_on(
    tmp_path, monkeypatch
):
    computed = create_autospec(MapGeometrySuite.evaluate, side_effect=MapGeometrySuite.evaluate)
    monkeypatch.setattr(MapGeometrySuite, 'evaluate', computed)
    with LoopbackModels(reply=scripted_model.reply) as server:

        def suites(cache):
            options = {'answerer': 'openai:m', 'base_url': server.url, 'concurrency': 1}
            options |= {'cache': str(tmp_path / cache), 'count': 100}
            return [SUITES[0], SuiteConfig(name='exact_questions', options=options)]

        whole = inputs(tmp_path / 'whole')
        expected = evaluate_run(whole, suites('first'))
        batches = len(server.received)
        assert batches > 1
        source = inputs(tmp_path / 'cut')
        server.missteps, server.always = deque([Misstep('ok')]), Misstep('status', 401)
        computed.reset_mock()
        with pytest.raises(IncompleteError, match='exact_questions: .* unanswered: 401 Unauth'):
            evaluate_run(source, suites('second'))
        out = source.output_directory
        assert not (out / 'report.json').exists()
        partial = RunReport.model_validate_json((out / 'incomplete.json').read_text())
        assert partial.status is Status.INCOMPLETE
        assert {record.suite for record in partial.metrics} == {'map_geometry'}
        with pytest.raises(IncompleteError, match=r'questions of .*answers\.jsonl'):
            read_complete(out / 'vqa' / 'answers.jsonl', Answer)
        server.always, asked = None, len(server.received)
        report = evaluate_run(source, suites('second'))
        assert len(server.received) - asked == batches - 1, 'what was answered is not asked again'
        assert computed.call_count == 1, 'what was computed is not computed again'
    assert report == expected
    names = sorted(path.name for path in (out / 'vqa').iterdir())
    assert 'answers.jsonl' in names
    for name in ('report.json', *(f'vqa/{name}' for name in names)):
        assert (out / name).read_bytes() == (whole.output_directory / name).read_bytes(), name
    assert not (out / 'incomplete.json').exists()
