"""Files of CoSpace: what is read in replies, as published and strictly, and the figures."""

import json

import pytest
from support.commands import output_of
from support.published_rows import OPTIONS, line

from osmabench_ros.errors import QuestionError
from osmabench_ros.metrics.record import Mode
from osmabench_ros.suites.cospace.answering import COMPASS, Order, Task
from osmabench_ros.suites.cospace.suite import PUBLISHED, Saved


@pytest.mark.parametrize(('task', 'said', 'answer', 'compat', 'strict'), [
    (Task.DIRECTION, 'B. east', 'B', True, True),
    (Task.DIRECTION, 'B', 'B', True, True),
    (Task.DIRECTION, 'Answer: B', 'B', True, True),
    # The right letter with a dot counts, but not next to another.
    (Task.DIRECTION, 'Not A. but B.', 'B', False, False),
    # Without it the last capital letter counts, of any word, or of a wrong option.
    (Task.DIRECTION, 'It is B, I think', 'B', False, False),
    (Task.DIRECTION, 'The answer is D. Because of C', 'C', True, False),
    (Task.DIRECTION, 'The answer is D. Because of C', 'D', True, True),
    (Task.DIRECTION, 'east', 'B', False, True),
    # What is read depends on what is right: 'one' is in 'none' where 1 is, and elsewhere nothing.
    (Task.COUNT, 'There are none', '1', True, False),
    (Task.COUNT, 'There are none', '2', False, False),
    (Task.COUNT, 'There are two chairs', '2', True, True),
    (Task.COUNT, 'I see 3 of them', '3', True, True),
    (Task.COUNT, 'Eleven', '11', True, True),
    (Task.COUNT, 'Twelve', '12', False, True),
    (Task.COUNT, '9' * 400, '9' * 400, True, True),
    (Task.DIFFERENCE, 'The 4 others fit, image 2 does not', '2', False, False),
    (Task.DIFFERENCE, 'The 4 others fit, image 2 does not', '4', True, False),
    (Task.PLACE, "{'Answer1': 'B', 'Answer2': 'D'}", 'B', True, True),
    (Task.DECISION, "{'Answer1': 'B', 'Answer2': 'D'}", 'D', True, True),
    (Task.DECISION, 'Answer1: B\nAnswer2: D', 'D', False, True),
    (Task.DECISION, '{"Answer1": "", "Answer2": "D"}', 'D', False, True),
    (Task.PLACE, '{"Answer1": "", "Answer2": "D"}', 'B', False, False),
    (Task.PLACE, 'B and D', 'B', False, False),
])  # fmt: skip
def test_replies_are_read_as_published_and_without_what_is_right(
    task, said, answer, compat, strict
):
    options = () if task.numbers else COMPASS[::2]
    item = Saved(task, Order.CLOCKWISE, 0, options, answer, said, task.part)
    for mode, right in ((Mode.COMPAT, compat), (Mode.STRICT, strict)):
        (row,) = PUBLISHED.compare([item], mode)
        assert row['right'] is right


def test_figures_by_task_and_order_with_baselines(write_file):
    rows = [line('direction', i, letter, 'A') for i, letter in enumerate('AAB')]
    rows += [line('direction-turn', i, letter, said) for i, (letter, said) in
             enumerate(zip('AAB', 'ABB', strict=True))]  # fmt: skip
    rows.append(line('counting-2', 0, '3', '3', ''))
    rows.append(json.dumps({
        'index': 0, 'task': 'planning', 'answer-qa': 'A', 'answer-dec': 'B',
        'options-qa': OPTIONS, 'options-dec': OPTIONS, 'pred': '{"Answer1": "A", "Answer2": "A"}',
    }))  # fmt: skip
    file = write_file('pred.jsonl', '\n'.join(rows))
    found = PUBLISHED.score_files([file])
    scores = {(row['mode'], row['task'], row['order']): row for row in found}
    for mode in ('compat', 'strict'):
        assert scores[mode, 'DIR-Rec', 'clockwise']['accuracy'] == pytest.approx(2 / 3)
        both = scores[mode, 'DIR-Rec', 'all']
        # ACC_q over six questions, ACC_p over three pairs.
        assert (both['accuracy'], both['accuracy_pairs']) == pytest.approx((4 / 6, 1 / 3))
        assert (both['majority'], both['random']) == pytest.approx((2 / 3, 0.25))
        assert scores[mode, 'CNT', '2']['accuracy'] == 1.0
        assert scores[mode, 'CNT', '2']['random'] == pytest.approx(0.1)
        assert scores[mode, 'PLA-QA', 'clockwise']['accuracy'] == 1.0
        assert scores[mode, 'PLA-Dec', 'clockwise']['accuracy'] == 0.0
    output = output_of('score', 'cospace', file, '--format', 'json')
    assert len(json.loads(output)) == len(scores)


def test_annotations_alone_give_the_baselines(write_file):
    """Of the published DIR-Rec 83 of 250 answers are A: always A is right for 33 %."""
    letters = 'A' * 83 + 'B' * 78 + 'C' * 55 + 'D' * 34
    file = write_file(
        'direction.jsonl', '\n'.join(line('direction', i, x) for i, x in enumerate(letters))
    )
    score = PUBLISHED.score_files([file])[0]
    assert (score['answered'], score['accuracy']) == (0, None)
    assert score['majority'] == pytest.approx(0.332)


@pytest.mark.parametrize(('text', 'message'), [
    (line('directions', 0, 'A'), r'x\.jsonl:1: task is "directions"'),
    (line('direction', 0, 'x'), r'x\.jsonl:1: "answer" must be a letter'),
    (line('counting', 0, 'A'), r'x\.jsonl:1: "answer" must be a number'),
    (f'{line("direction", 0, "A")}\n{line("direction", 0, "A")}', r':2: .* is there twice'),
    ('{"index": 0}', r'x\.jsonl:1: .*task'),
    ('no JSON', r'x\.jsonl:1'),
    ('', 'there is no question'),
])  # fmt: skip
def test_a_fault_is_named_with_file_and_line(write_file, text, message):
    file = write_file('x.jsonl', text)
    with pytest.raises(QuestionError, match=message):
        PUBLISHED.score_files([file])
