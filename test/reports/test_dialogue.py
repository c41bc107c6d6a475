from dataclasses import replace

import numpy as np
import pytest
from support.world.matrix import HOSTILE, SOFA

from osmabench_ros.base.files import claim_folder
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.reports import content
from osmabench_ros.reports.pictures.sample_frames import SampleFrame
from osmabench_ros.reports.pictures.topview import TopGrid
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.vqa.question_files import write_records
from osmabench_ros.vqa.questions import Answer, AnswerType, Evidence, Question, ToolUse, Verdict
from osmabench_ros.vqa.scores import UNSERVED


def question(number):
    return Question(f'q-{number}', 's', 'scene', 'Cat', f'text {number}', AnswerType.YES_NO, 'yes')


def write(folder, name, *records):
    write_records(folder / 'vqa' / f'{name}.jsonl', records)


@pytest.fixture
def folder(tmp_path):
    claim_folder(tmp_path)
    write(tmp_path, 'questions', *map(question, range(3)))
    write(tmp_path, 'answers', Answer('q-2', 'no', 'a'), Answer('q-0', 'yes', 'a', (4,)))
    write(tmp_path, 'verdicts', Verdict('q-0', True, 'j'), Verdict('q-2', False, 'j'))
    return tmp_path


def test_answers_join_by_id_and_missing_ones_are_unanswered(folder):
    rows = content.build_answer_rows(content.read_dialogue(folder), ())
    verdicts = {key: (row['answer'], row['verdict']) for key, row in rows.items()}
    assert verdicts == {'q-0': ('yes', 'right'), 'q-1': ('', 'unanswered'), 'q-2': ('no', 'wrong')}
    assert rows['q-0']['nodes'] == [4]


def test_a_question_says_how_much_of_its_objects_was_visible(folder):
    known = replace(question(1), provenance={'kind': 'height', 'visible_share': '0.048'})
    write(folder, 'questions', question(0), known)
    rows = content.build_question_rows(content.read_dialogue(folder))
    assert [(row['kind'], row['visible']) for row in rows] == [
        ('', ''), ('height', '4.8% of the surface')
    ]  # fmt: skip


def test_questions_that_were_not_applicable_are_neither_wrong_nor_compared(folder):
    unserved = Verdict('q-2', False, 'j', answered=False, reason=UNSERVED)
    write(folder, 'verdicts', Verdict('q-0', True, 'j'), unserved)
    dialogue = content.read_dialogue(folder)
    assert content.build_answer_rows(dialogue, ())['q-2']['verdict'] == 'not applicable'
    assert dialogue.correct == {('scene', 'q-0'): True, ('scene', 'q-1'): False}


def test_a_folder_without_answers_is_an_empty_dialogue(tmp_path):
    assert content.read_dialogue(tmp_path).questions == ()


@pytest.mark.parametrize(
    ('value', 'tolerance', 'text'),
    [
        ('yes', 0.0, 'yes'),
        (3, 0.0, '3'),
        (1.23456, 0.1, '1.23 ± 0.1'),
        (2.0, 0.0, '2'),
        (None, 0.0, ''),
        ((1.0, 2.54321, 0.0), 0.1, '1, 2.54, 0 ± 0.1'),
        (('sofa', 'lamp'), 0.0, 'sofa, lamp'),
    ],
)
def test_answers_read_as_people_write_them(value, tolerance, text):
    assert content.show_answer(value, tolerance) == text


def test_the_frame_that_shows_most_of_the_nodes_is_chosen(matrix):
    dialogue = content.read_dialogue(matrix.plans[0].directory)
    box = (10.0, 20.0, 5.0, 5.0)
    frames = [
        SampleFrame(0, 0.0, '', {1: (900, box)}),
        SampleFrame(7, 1.0, '', {SOFA: (5, box)}),
        SampleFrame(9, 2.0, '', {SOFA: (8, box)}),
    ]
    rows = content.build_answer_rows(dialogue, frames)
    assert rows['q-0']['frame'] == {'index': 9, 'boxes': {str(SOFA): box}}
    assert rows['q-2']['frame'] is None


def test_nodes_have_a_name_and_a_place_in_the_view():
    grid = TopGrid(0.0, 4.0, 0.5, 8, 8, (0.0,))
    nodes = (
        SceneNode(1, labels=(ScoredLabel('cup'),), box=AxisAlignedBox([1, 1, 0], [2, 3, 1])),
        SceneNode(2, captions=(HOSTILE,)),
        SceneNode(3),
    )
    rows = content.build_node_rows(
        SceneGraph(nodes), [{'nodes': [1, 2]}, {'nodes': [3, 77]}], grid
    )
    assert rows['1'] == {'name': 'cup', 'box': [2.0, 2.0, 2.0, 4.0]}
    assert rows['2'] == {'name': HOSTILE[:80], 'box': None}
    assert rows['3']['name'] == 'object'
    assert '77' not in rows


def test_the_change_between_runs_is_paired_by_question(folder):
    dialogue = content.read_dialogue(folder)
    assert content.compute_paired_interval(dialogue, dialogue) == (0.0, 0.0)
    assert np.isnan(
        content.compute_paired_interval(dialogue, content.read_dialogue(folder / 'elsewhere'))
    ).all()


def test_a_question_written_about_a_frame_shows_that_frame(folder):
    about = replace(question(0), evidence=Evidence(frames=(4,)))
    write(folder, 'questions', about, question(1), question(2))
    frames = [SampleFrame(index, 0.0, 'uri', {}) for index in (1, 4)]
    rows = content.build_answer_rows(content.read_dialogue(folder), frames)
    assert rows['q-0']['frame'] == {'index': 4, 'boxes': {}}
    assert rows['q-1']['frame'] is None


def test_questions_of_several_suites_follow_each_other_and_the_folder_itself_wins(folder):
    other = 'another_suite'
    write(folder, f'{other}/questions', question(0), question(9))
    write(folder, f'{other}/answers', Answer('q-0', 'no', 'b'), Answer('q-9', 'yes', 'b'))
    write(folder, f'{other}/verdicts', Verdict('q-0', False, 'j'), Verdict('q-9', True, 'j'))
    rows = content.build_answer_rows(content.read_dialogue(folder), ())
    assert list(rows) == ['q-0', 'q-1', 'q-2', 'q-9']
    assert [rows[key]['verdict'] for key in ('q-0', 'q-9')] == ['right', 'right']


def test_options_changes_and_what_was_looked_up_go_with_their_questions(folder):
    choice = replace(
        question(0), answer_type=AnswerType.CHOICE, answer='b', options=('a', 'b'),
        context_change='The sofa was moved.',
    )  # fmt: skip
    used = ToolUse('distance', '{"first": 1}', '<b>2</b>')
    write(folder, 'questions', choice, question(1))
    answer = Answer('q-0', 'b', 'tools', transcript=(used,))
    write(folder, 'answers', answer, Answer('q-1', 'yes', 'tools'))
    dialogue = content.read_dialogue(folder)
    first, second = content.build_question_rows(dialogue)
    assert (first['options'], first['changed']) == (['a', 'b'], 'The sofa was moved.')
    assert not {'options', 'changed'} & set(second)
    rows = content.build_answer_rows(dialogue, ())
    assert rows['q-0']['transcript'] == [
        {'tool': 'distance', 'arguments': '{"first": 1}', 'result': '<b>2</b>'}
    ]
    assert 'transcript' not in rows['q-1']
