"""The judge by rule, case by case."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from pydantic import TypeAdapter

from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.questions import Answer, AnswerType, Question

YES_NO, NUMBER, TEXT = map(AnswerType, ('yes_no', 'number', 'text'))
REPLIES = ('accepted', 'rejected', 'scores')
TABLE = Path(__file__).parents[1] / 'data' / 'judged_answers.yaml'


def judged(question, said):
    answer = None if said == 'nothing at all' else Answer('q', said, 'a')
    (found,) = DeterministicJudge().judge([(question, answer)])
    return found


def verdict(kind, right, said):
    return judged(Question('q', 's', 'x', 'c', 't', kind, right), said)


@pytest.mark.parametrize(
    ('kind', 'case'),
    [
        pytest.param(kind, case, id=f'{kind} {number} {case["answer"]}')
        for kind, cases in yaml.safe_load(TABLE.read_text('utf-8')).items()
        for number, case in enumerate(cases)
    ],
)
def test_answers_are_judged_as_in_the_table(kind, case):
    asked = {'id': 'q', 'suite': 's', 'scene': 'x', 'category': 'c', 'text': 'what?'}
    asked |= {key: value for key, value in case.items() if key not in REPLIES}
    question = TypeAdapter(Question).validate_python({**asked, 'answer_type': kind})
    scores = []
    for key, correct in (('accepted', True), ('rejected', False)):
        for said in case.get(key, ()):
            found = judged(question, tuple(said) if isinstance(said, list) else said)
            assert found.correct is correct, (said, found.reason)
            scores.append(found.score)
    assert scores == pytest.approx(case.get('scores', [None] * len(scores)))


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
        return np.ones((len(texts), 1), np.float32)


class Cosine:
    """Gives "wall" and "partition" one cosine, and other pairs 0."""

    def __init__(self, cosine):
        self.vectors = {'wall': (1, 0), 'partition': (cosine, (1 - cosine**2) ** 0.5)}

    def embed(self, texts):
        return np.array([self.vectors.get(text, (0, 0)) for text in texts])


@pytest.mark.parametrize(('cosine', 'same'), [(0.69, False), (0.71, True)])
def test_nouns_are_the_same_from_a_cosine_of_0_7(cosine, same):
    assert DeterministicJudge(Cosine(cosine)).same_text('wall', 'partition')[0] is same


def test_the_embedder_decides_only_what_no_rule_does():
    judge = DeterministicJudge(Alike())
    assert judge.same_text('wall', 'partition')[0]
    assert not judge.same_text('red lamp', 'blue lamp')[0]
    assert not judge.same_text('wall', 'unknown')[0]


def test_an_answer_in_other_units_is_converted():
    for names, metres in (
        ('m meter meters metre metres', 1.0),
        ('cm centimeter centimeters centimetre centimetres', 0.01),
        ('mm millimeter millimeters millimetre millimetres', 0.001),
        ('ft foot feet', 0.3048),
        ('inch inches', 0.0254),
    ):
        assert all(verdict(NUMBER, 50 * metres, f'50 {name}').correct for name in names.split())


def test_every_class_name_as_the_answer_is_wrong_for_any_right_answer():
    names = ('chair', 'table', 'lamp', 'sofa', 'rug', 'bed')
    everything = ', '.join(names)
    judge = DeterministicJudge(Alike())
    assert not any(judge.same_text(name, everything)[0] for name in names)
    assert not judge.same_text('lamp and rug', everything)[0]
