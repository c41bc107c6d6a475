"""The judge by rule, case by case."""

import pytest

from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.questions import Answer, AnswerType, Question

YES_NO, INTEGER, NUMBER, TEXT = (
    AnswerType.YES_NO,
    AnswerType.INTEGER,
    AnswerType.NUMBER,
    AnswerType.TEXT,
)


def verdict(kind, right, said, tolerance=0.0):
    question = Question('q', 's', 'x', 'c', 't', kind, right, tolerance)
    answer = None if said == 'nothing at all' else Answer('q', said, 'a')
    (found,) = DeterministicJudge().judge([(question, answer)])
    return found


@pytest.mark.parametrize(
    ('kind', 'right', 'said', 'correct'),
    [
        (YES_NO, 'yes', 'Yes.', True),
        (YES_NO, 'No', 'answer: No', True),
        (YES_NO, 'no', 'No, there is no lamp.', True),
        (YES_NO, 'no', "I don't know", False),
        (YES_NO, 'no', 'No answer', False),
        (YES_NO, 'no', 'No information is given', False),
        (YES_NO, 'yes', 'Possibly yes', False),
        (INTEGER, 3, 'three', True),
        (INTEGER, 3, 'There are 3 chairs', True),
        (INTEGER, 3, '3 or 4', False),
        (INTEGER, 3, 4, False),
        (TEXT, 'Gray upholstered chair', 'chair', True),
        (TEXT, 'The lamp', 'lamp', True),
        (TEXT, 'sofa', 'couch', True),
        (TEXT, 'red chair', 'blue chair', False),
        (TEXT, 'grey', 'gray', True),
        (TEXT, 'brown', 'dark brown', True),
        (TEXT, 'blue', 'navy', True),
        (TEXT, 'white', 'black', False),
        (TEXT, 'wood', 'wooden', True),
        (TEXT, 'Wall', 'staircase', False),
        (TEXT, 'Wall', 'I am unable to answer this question.', False),
        (TEXT, 'Unknown', 'Cannot be determined.', True),
        (TEXT, 'shelf', 'shelves', True),
    ],
)
def test_verdicts(kind, right, said, correct):
    assert verdict(kind, right, said).correct is correct


def test_numbers_are_right_up_to_and_including_their_tolerance():
    assert verdict(NUMBER, 2.0, 2.3, 0.3).correct
    assert verdict(NUMBER, 2.0, '1.7 m', 0.3).correct
    assert not verdict(NUMBER, 2.0, 2.301, 0.3).correct
    assert not verdict(NUMBER, 2.0, 'far', 0.3).correct


@pytest.mark.parametrize('said', [None, 'nothing at all'])
def test_no_answer_is_wrong_and_unanswered(said):
    found = verdict(YES_NO, 'no', said)
    assert not found.correct
    assert not found.answered


def test_a_refusal_is_unanswered_unless_it_is_the_right_answer():
    assert not verdict(TEXT, 'lamp', 'Not enough information').answered
    assert verdict(TEXT, 'Unknown', 'unknown').answered


class Alike:
    """Takes everything for the same."""

    def embed(self, texts):
        import numpy as np

        return np.ones((len(texts), 1), np.float32)


def test_the_embedder_decides_only_what_no_rule_does():
    judge = DeterministicJudge(Alike())
    assert judge.same_text('wall', 'partition')[0]
    assert not judge.same_text('red lamp', 'blue lamp')[0]
    assert not judge.same_text('wall', 'unknown')[0]
