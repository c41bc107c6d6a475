"""Files of CoSpace: what is read in replies, as published and strictly, and the figures."""

import json

import pytest
from support.published_rows import OPTIONS, line
from typer.testing import CliRunner

from osmabench_ros.cli.score import app
from osmabench_ros.errors import QuestionError
from osmabench_ros.metrics.record import Mode
from osmabench_ros.suites.cospace import suite

COMPASS = ('north', 'east', 'south', 'west')


@pytest.mark.parametrize(('task', 'said', 'answer', 'read', 'strict'), [
    (suite.Task.DIRECTION, 'B. east', 'B', 'B', 'B'),
    (suite.Task.DIRECTION, 'B', 'B', 'B', 'B'),
    (suite.Task.DIRECTION, 'Answer: B', 'B', 'B', 'B'),
    # The right letter with a dot counts, but not beside another; then the whole text is read.
    (suite.Task.DIRECTION, 'Not A. but B.', 'B', 'Not A. but B.', None),
    # Without it the last capital letter counts, that of any word, or of a wrong option.
    (suite.Task.DIRECTION, 'It is B, I think', 'B', 'I', None),
    (suite.Task.DIRECTION, 'The answer is D. Because of C', 'A', 'C', 'D'),
    (suite.Task.DIRECTION, 'east', 'B', 'E', 'B'),
    # What is read depends on what is right: 'one' is in 'none' where 1 is, and elsewhere nothing.
    (suite.Task.COUNT, 'There are none', '1', '1', None),
    (suite.Task.COUNT, 'There are none', '2', '-1', None),
    (suite.Task.COUNT, 'There are two chairs', '2', '2', '2'),
    (suite.Task.COUNT, 'I see 3 of them', '2', '3', '3'),
    (suite.Task.COUNT, 'Twelve', '12', '-1', '12'),
    (suite.Task.DIFFERENCE, 'The 4 others fit, image 2 does not', '2', '4', None),
    (suite.Task.PLACE, "{'Answer1': 'B', 'Answer2': 'D'}", 'B', 'B', 'B'),
    (suite.Task.DECISION, "{'Answer1': 'B', 'Answer2': 'D'}", 'D', 'D', 'D'),
    (suite.Task.DECISION, 'Answer1: B\nAnswer2: D', 'D', 'E', 'D'),
    (suite.Task.PLACE, '{"Answer1": "", "Answer2": "D"}', 'B', 'E', None),
    (suite.Task.PLACE, 'B and D', 'B', 'E', None),
])  # fmt: skip
def test_replies_are_read_as_published_and_without_what_is_right(task, said, answer, read, strict):
    options = () if task in (suite.Task.COUNT, suite.Task.DIFFERENCE) else COMPASS
    item = suite.Saved(task, suite.Order.CLOCKWISE, 0, options, answer, said)
    assert suite.as_published(task, said, answer) == read
    assert suite.strictly(item) == strict
    for mode, found in ((Mode.COMPAT, read), (Mode.STRICT, strict)):
        (row,) = suite.compare_replies([item], mode)
        assert row['right'] is (found == answer)


def test_figures_by_task_and_order_with_baselines(tmp_path):
    rows = [line('direction', i, letter, 'A') for i, letter in enumerate('AAB')]
    rows += [line('direction-turn', i, letter, said) for i, (letter, said) in
             enumerate(zip('AAB', 'ABB', strict=True))]  # fmt: skip
    rows.append(line('counting-2', 0, '3', '3', ''))
    rows.append(json.dumps({
        'index': 0, 'task': 'planning', 'answer-qa': 'A', 'answer-dec': 'B',
        'options-qa': OPTIONS, 'options-dec': OPTIONS, 'pred': '{"Answer1": "A", "Answer2": "A"}',
    }))  # fmt: skip
    file = tmp_path / 'pred.jsonl'
    file.write_text('\n'.join(rows))
    found = suite.PUBLISHED.score_files([file])
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
    found = CliRunner().invoke(app, ['cospace', str(file), '--format', 'json'])
    assert found.exit_code == 0
    assert len(json.loads(found.output)) == len(scores)


def test_annotations_alone_give_the_baselines(tmp_path):
    """Of the published DIR-Rec 83 of 250 answers are A: always A is right for 33 %."""
    letters = 'A' * 83 + 'B' * 78 + 'C' * 55 + 'D' * 34
    file = tmp_path / 'direction.jsonl'
    file.write_text('\n'.join(line('direction', i, x) for i, x in enumerate(letters)))
    score = suite.PUBLISHED.score_files([file])[0]
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
def test_a_fault_is_named_with_file_and_line(tmp_path, text, message):
    file = tmp_path / 'x.jsonl'
    file.write_text(text)
    with pytest.raises(QuestionError, match=message):
        suite.PUBLISHED.score_files([file])
