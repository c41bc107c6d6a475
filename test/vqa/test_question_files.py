"""Typed JSON lines: what is written comes back, and mistakes are named with file and line."""

import pytest

from osmabench_ros.errors import QuestionError
from osmabench_ros.vqa.question_files import digest, read_records, write_records
from osmabench_ros.vqa.questions import (
    Answer,
    AnswerType,
    Evidence,
    Inquiry,
    Question,
    Verdict,
    inquiry,
    question_id,
)

QUESTION = Question(
    'q-1', 'exact_questions', 'room', 'Measurement', 'How many?', AnswerType.INTEGER, 3, 0.5,
    Evidence((4, 5), (10,)), {'seed': '1'},
)  # fmt: skip


@pytest.mark.parametrize(
    'record',
    [
        QUESTION,
        Answer('q-1', 3, 'rule', (4,), 'note'),
        Answer('q-1', 2.5, 'rule'),
        Answer('q-1', 'yes "quoted" \n line, ünïcode', 'rule'),
        Answer('q-1', None, 'rule', note='silent'),
        Verdict('q-1', True, 'judge', reason='equal'),
    ],
)
def test_records_come_back_as_they_were_written(tmp_path, record):
    path = tmp_path / 'deep' / 'records.jsonl'
    write_records(path, [record])
    (back,) = read_records(path, type(record))
    assert back == record
    if isinstance(record, Answer):
        assert type(back.value) is type(record.value)
    assert [p.name for p in path.parent.iterdir()] == ['records.jsonl']
    assert digest([back]) == digest([record])


@pytest.mark.parametrize(
    ('line', 'fault'),
    [
        ('{"id": ', 'JSON'),
        ('{"id": "q"}', 'suite'),
        ('[]', 'must be a mapping of keys to values'),
        ('{"id": "q", "suite": "s", "scene": "s", "category": "c", "text": "t", '
         '"answer_type": "riddle", "answer": "x"}', 'answer_type'),
    ],
)  # fmt: skip
def test_a_malformed_line_is_named_with_file_and_line(tmp_path, line, fault):
    path = tmp_path / 'questions.jsonl'
    write_records(path, [QUESTION])
    with path.open('a') as stream:
        stream.write('\n' + line + '\n')
    with pytest.raises(QuestionError, match=r'questions\.jsonl:3') as error:
        read_records(path, Question)
    assert fault in str(error.value)


def test_a_line_of_absurd_length_is_named(tmp_path):
    path = tmp_path / 'questions.jsonl'
    path.write_text('{"evidence": [' + '[],' * 100_000 + '[]]}\n')
    with pytest.raises(QuestionError, match=r'questions\.jsonl:1: the line has'):
        read_records(path, Question)


def test_an_id_that_repeats_is_an_error_on_both_ways(tmp_path):
    path = tmp_path / 'questions.jsonl'
    with pytest.raises(QuestionError, match='"q-1" occurs again'):
        write_records(path, [QUESTION, QUESTION])
    assert not path.exists()
    write_records(path, [QUESTION])
    path.write_text(path.read_text() * 2)
    with pytest.raises(QuestionError, match='"q-1" occurs again'):
        read_records(path, Question)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(QuestionError, match=r'nowhere\.jsonl'):
        read_records(tmp_path / 'nowhere.jsonl', Answer)


def test_an_inquiry_hides_the_answer_and_where_it_comes_from():
    assert inquiry(QUESTION) == Inquiry('q-1', 'How many?', AnswerType.INTEGER)


def test_ids_depend_on_suite_scene_and_text_alone():
    assert question_id('a', 'b', 'c') == question_id('a', 'b', 'c')
    assert (
        len({question_id('a', 'b', 'c'), question_id('a', 'b', 'd'), question_id('a', 'c', 'c')})
        == 3
    )
