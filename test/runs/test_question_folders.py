"""Suites that write questions under the same names do not overwrite each other."""

import pytest

from osmabench_ros.runs.evaluate.evaluation import QuestionFolders

NAMES = ('questions.jsonl', 'answers.jsonl', 'verdicts.jsonl')


def evaluate(directory, *suites):
    """Let suites write one after another, as in a run; return all files with their content."""
    folders = QuestionFolders(directory)
    for number, suite in enumerate(suites):
        for name in NAMES if suite != 'map_geometry' else ('figures.npz',):
            (directory / name).write_text(f'{suite} {number}')
        folders.part(suite)
    folders.settle()
    files = (path for path in directory.rglob('*') if path.is_file())
    return {str(path.relative_to(directory)): path.read_text() for path in files}


@pytest.mark.parametrize('suite', ['exact_questions', 'riddles'])
def test_a_single_suite_writes_to_the_folder_itself(tmp_path, suite):
    found = evaluate(tmp_path, 'map_geometry', suite)
    assert found == {'figures.npz': 'map_geometry 0', **dict.fromkeys(NAMES, f'{suite} 1')}


def test_exact_questions_take_the_folder_and_others_one_of_their_name(tmp_path):
    found = evaluate(tmp_path, 'riddles', 'exact_questions', 'quiz')
    assert found == {
        **dict.fromkeys(NAMES, 'exact_questions 1'),
        **{f'riddles/{name}': 'riddles 0' for name in NAMES},
        **{f'quiz/{name}': 'quiz 2' for name in NAMES},
    }


def test_without_exact_questions_the_first_suite_takes_the_folder(tmp_path):
    found = evaluate(tmp_path, 'riddles', 'quiz')
    assert found['questions.jsonl'] == 'riddles 0'
    assert found['quiz/verdicts.jsonl'] == 'quiz 1'


def test_suites_that_ask_nothing_leave_everything_where_it_is(tmp_path):
    assert evaluate(tmp_path, 'map_geometry') == {'figures.npz': 'map_geometry 0'}
