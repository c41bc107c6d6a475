"""Questions, answers and verdicts in files."""

import pytest

from osmabench_ros.errors import QuestionError
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.question_files import digest, read_records, to_json_line, write_records
from osmabench_ros.vqa.questions import (
    Answer,
    AnswerType,
    Evidence,
    Inquiry,
    Question,
    ToolUse,
    Unit,
    Verdict,
    inquiry,
    question_id,
)


def asked(kind, answer, **more):
    return Question('q', 's', 'room', 'c', 'what?', AnswerType(kind), answer, **more)


@pytest.mark.parametrize(
    ('kind', 'answer', 'more', 'fault'),
    [
        ('choice', 'sofa', {'options': ('chair', 'lamp')}, 'one of its options'),
        ('choice', 'sofa', {}, 'has options'),
        ('choice', 'sofa', {'options': ('sofa', 'Sofa ')}, 'different options'),
        ('text', 'sofa', {'options': ('sofa', 'lamp')}, 'and no other'),
        ('text', ('sofa',), {}, 'is no list'),
        ('coordinates', (1.0, 2.0), {}, '3 lengths'),
        ('coordinates', (1.0, 2.0, float('nan')), {}, '3 lengths'),
        ('box', (1, 1, 1, 0, 2, 2), {}, 'lower corner'),
        ('set', ('chair', 3), {}, 'ids or of names'),
        ('set', ('chair', 'chair'), {}, 'once'),
        ('ordered_list', 'chair', {}, 'ids or of names'),
    ],
)
def test_an_answer_that_is_not_of_its_type_is_refused(kind, answer, more, fault):
    with pytest.raises(ValueError, match=f'question "q".*{fault}'):
        asked(kind, answer, **more)


@pytest.mark.parametrize('value', ['1' * 400, f'[{"1" * 400}, 2, 3]', f'"{"1" * 5000}"'])
@pytest.mark.parametrize(
    ('kind', 'right'),
    [('integer', 3), ('coordinates', (1, 2, 3)), ('box', (0, 0, 0, 1, 1, 1)), ('set', (2, 3))],
)
def test_a_number_of_hundreds_of_digits_is_a_wrong_answer(tmp_path, kind, right, value):
    file = tmp_path / 'answers.jsonl'
    file.write_text(f'{{"question_id": "q", "answerer": "a", "value": {value}}}\n')
    (verdict,) = DeterministicJudge().judge([(asked(kind, right), *read_records(file, Answer))])
    assert not verdict.correct


def test_a_right_place_is_not_infinitely_far_away(tmp_path):
    line = to_json_line(asked('coordinates', (1, 2, 3)))
    (tmp_path / 'questions.jsonl').write_text(line.replace('[1,', f'[{"1" * 400},'))
    with pytest.raises(QuestionError, match='3 lengths'):
        read_records(tmp_path / 'questions.jsonl', Question)


CHOICE = asked('choice', 'b', options=('a', 'b'), images=('1.png',), context_change='moved')
PLAIN = asked('text', 'sofa')
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
        CHOICE,
        asked('coordinates', (1.0, 2.5, 0.0), tolerance=0.1),
        asked('number', 2.0, unit=Unit.SQUARE_METRE),
        asked('set', (3, 5)),
        asked('ordered_list', ('sofa', 'lamp')),
        asked('box', (0.0, 0.0, 0.0, 1.0, 1.0, 1.0)),
        Answer('q', ('sofa', 'lamp'), 'a', transcript=(ToolUse('rooms', '{}', '[]'),)),
        Verdict('q', False, 'j', score=0.5),
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
        (f'{to_json_line(PLAIN)[:-1]},"optoins":["a", "b"]}}', 'optoins'),
        (f'{to_json_line(PLAIN)[:-1]},"options":["a", "b"]}}', 'and no other'),
        (f'{to_json_line(PLAIN)[:-1]},"images":["../../secret.png"]}}', 'images'),
        (f'{to_json_line(PLAIN)[:-1]},"unit":"furlong"}}', 'unit'),
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


def test_a_line_of_absurd_length_is_named(write_file):
    path = write_file('questions.jsonl', '{"evidence": [' + '[],' * 100_000 + '[]]}\n')
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
    seen = Inquiry('q', 'what?', AnswerType.CHOICE, ('a', 'b'), Unit.NONE, ('1.png',), 'moved')
    assert inquiry(CHOICE) == seen


def test_a_file_of_simple_questions_has_no_empty_fields():
    new = ('options', 'unit', 'images', 'context_change', 'transcript', 'score')
    for record in (PLAIN, Answer('q', 'sofa', 'a'), Verdict('q', True, 'j')):
        assert not any(f'"{key}"' in to_json_line(record) for key in new)


def test_ids_depend_on_suite_scene_and_text_alone():
    assert question_id('a', 'b', 'c') == question_id('a', 'b', 'c')
    assert len({question_id(*parts) for parts in ('abc', 'abd', 'acc')}) == 3
