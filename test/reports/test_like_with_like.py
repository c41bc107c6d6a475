"""Results are compared only if truth, questions, gates and settings are the same."""

from dataclasses import replace

import pytest
from support.commands import osmabench
from support.world.maps import ground_truth, labelled_map
from support.world.matrix import config

from osmabench_ros.errors import RunError
from osmabench_ros.maps.storage import write_map
from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.runs import evaluation
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.sequences.ground_truth import write_ground_truth
from osmabench_ros.vqa.question_files import write_records
from osmabench_ros.vqa.questions import AnswerType, Question

ASKED = Question('q', 'exact_questions', 's', 'c', 'Is there a cup?', AnswerType.YES_NO, 'yes')
OTHER_SUITE = replace(ASKED, id='r', suite='riddles')


def scored(folder, truth=None, asked=(ASKED,), geometry=None, **answering):
    write_map(labelled_map(), folder / 'map')
    write_ground_truth(truth or ground_truth(), folder / 'ground_truth')
    write_records(folder / 'questions.jsonl', asked)
    places = (folder / name for name in ('map', 'ground_truth', 'out', 'questions.jsonl'))
    inputs = evaluation.EvaluationInputs(evaluation.identify_unnamed_run(), *places, device='cpu')
    suites = [
        SuiteConfig(name='map_geometry', options=geometry or {}),
        SuiteConfig(name='exact_questions', options={'embedding': 'off', **answering}),
    ]
    evaluation.evaluate_map(inputs, suites)
    return folder / 'out'


def shifted():
    truth = ground_truth()
    surface = replace(truth.surface, points=truth.surface.points + 0.01)
    return replace(truth, surface=surface)


@pytest.mark.parametrize(
    ('changed', 'named'),
    [
        ({'truth': shifted()}, 'true surface'),
        ({'asked': (replace(ASKED, answer='no'),)}, 'questions of exact_questions'),
        ({'geometry': {'max_distance_m': 0.5}}, 'gate of map_geometry'),
        ({'geometry': {'distances': 'points'}}, 'settings of map_geometry'),
        ({'embedding': 'on'}, 'settings of exact_questions'),
    ],
)
def test_what_differs_is_refused_by_name(changed, named, tmp_path):
    before, after = scored(tmp_path / 'a'), scored(tmp_path / 'b', **changed)
    with pytest.raises(RunError, match=rf'cannot be compared: they differ in {named} \('):
        osmabench('compare', before, after)


@pytest.mark.parametrize(
    'changed', [{}, {'asked': (ASKED, OTHER_SUITE)}, {'graph_tokens': 900}], ids=str
)
def test_who_answers_and_what_other_suites_ask_may_differ(changed, tmp_path):
    before, after = scored(tmp_path / 'a'), scored(tmp_path / 'b', **changed)
    assert osmabench('compare', before, after).exit_code == 0


@pytest.mark.parametrize(
    'name',
    ['true surface', 'questions of exact_questions', 'gate of instances', 'settings of instances'],
)
@pytest.mark.parametrize('most_on_one_page', [25, 1])
def test_no_page_compares_unlike_runs(name, most_on_one_page, matrix, tmp_path, monkeypatch):
    monkeypatch.setattr('osmabench_ros.reports.matrix.MOST_ON_ONE_PAGE', most_on_one_page)
    first, second, *rest = matrix.report.runs
    one, other = (
        run.model_copy(update={'hashes': {**run.hashes, name: digit * 64}})
        for run, digit in ((first, '1'), (second, '2'))
    )
    with pytest.raises(RunError, match=rf'they differ in {name} \(1+ and 2+\)'):
        write_matrix_report(config(), matrix.plans, [one, other, *rest], tmp_path)
    assert not (tmp_path / 'report.html').exists()
