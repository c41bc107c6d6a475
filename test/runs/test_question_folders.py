"""Suites that write questions under the same names do not overwrite each other."""

import pytest

from osmabench_ros.base.files import Existing, atomic_directory
from osmabench_ros.runs.evaluation import set_questions_aside, settle_questions

NAMES = ('questions.jsonl', 'answers.jsonl', 'verdicts.jsonl')


def evaluate(directory, *suites, failing=(), kept=()):
    """Let suites write one after another, as in an evaluation; return all files by their paths."""
    with atomic_directory(directory, Existing.MERGE) as draft:
        for suite in suites:
            if suite in kept:
                continue
            names = NAMES[: 2 if suite in failing else 3]
            for name in names if suite != 'map_geometry' else ('cloud.npz',):
                (draft / name).write_text(suite)
            set_questions_aside(draft, suite)
    settle_questions(directory, suites, complete=not failing)
    files = (path for path in directory.rglob('*') if path.suffix in ('.jsonl', '.npz'))
    return {str(path.relative_to(directory)): path.read_text() for path in files}


@pytest.mark.parametrize('suite', ['exact_questions', 'riddles'])
def test_a_single_suite_writes_to_the_folder_itself(tmp_path, suite):
    found = evaluate(tmp_path / 'vqa', 'map_geometry', suite)
    assert found == {'cloud.npz': 'map_geometry', **dict.fromkeys(NAMES, suite)}


@pytest.mark.parametrize(
    ('suites', 'main'),
    [
        (('riddles', 'exact_questions', 'quiz'), 'exact_questions'),
        (('riddles', 'map_geometry', 'quiz'), 'riddles'),
    ],
)
@pytest.mark.parametrize('failing', [(), ('riddles',), ('exact_questions', 'quiz'), ('quiz',)])
def test_the_main_suite_takes_the_folder_whatever_a_server_left_for_later(
    tmp_path, suites, main, failing
):
    failing = set(failing) & set(suites)
    if failing:
        evaluate(tmp_path / 'vqa', *suites, failing=failing)
    kept = set(suites) - failing if failing else ()
    found = evaluate(tmp_path / 'vqa', *suites, kept=kept)
    found.pop('cloud.npz', None)
    others = set(suites) - {main, 'map_geometry'}
    assert found == {
        **dict.fromkeys(NAMES, main),
        **{f'{suite}/{name}': suite for suite in others for name in NAMES},
    }


def test_another_main_suite_leaves_nothing_of_the_one_before(tmp_path):
    evaluate(tmp_path / 'vqa', 'riddles')
    found = evaluate(tmp_path / 'vqa', 'riddles', 'exact_questions', failing=('exact_questions',))
    assert found == {
        **dict.fromkeys(NAMES[:2], 'exact_questions'),
        **{f'riddles/{name}': 'riddles' for name in NAMES},
    }
