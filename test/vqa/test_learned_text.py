"""The floor of answers from the text of a question, learned in apartments that no run uses."""

from collections import Counter

import pytest
from support.benchmark_scripts import benchmark_script
from support.world.graphs import as_map, ground_truth_of, large_graph, living_room

from osmabench_ros.base.files import read_json
from osmabench_ros.vqa.answering.baselines import TABLE, answer_from_text
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.evaluation import QuestionedMap, answer_all, judge_all, scored
from osmabench_ros.vqa.exact.generation import questions_about
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.questions import AnswerType, Question

FLOORS = ('floor_learned_text', 'floor_inventory', 'floor_permuted_names')


def test_the_table_is_of_the_questions_that_are_asked_today():
    script = benchmark_script('learn_answers')
    shipped = read_json(TABLE)
    made = script.collect_answers(script.ask_about_apartment(script.SEEDS[0]))
    assert len(made) > 20
    for kind, answered in made.items():
        for gaps, answers in answered.items():
            assert not Counter(answers) - Counter(shipped[kind][gaps]), (kind, gaps)


def test_it_knows_what_the_words_of_a_question_give_away():
    def ask(text, kind, answer):
        return Question(text, 'x', 's', 'c', text, kind, answer, tolerance=0.2)

    asked = [
        ask('How tall is the refrigerator in metres?', AnswerType.NUMBER, 1.8),
        ask('Which is taller: the refrigerator or the kettle?', AnswerType.TEXT, 'refrigerator'),
        ask('What color is the bathtub?', AnswerType.TEXT, 'white'),
        ask('Why is it dark?', AnswerType.TEXT, 'night'),
    ]
    given = answer_from_text(asked)
    right = [item.correct for item in judge_all(asked, given, DeterministicJudge())]
    assert right == [True, True, True, False]
    assert given[-1].value is None


def score_answers(asked, questions):
    answers = answer_all(asked.semantic_map, questions, RuleAnswerer())
    verdicts = judge_all(questions, answers, DeterministicJudge())
    return scored(asked, questions, verdicts, suite='exact_questions')


@pytest.mark.parametrize('graph', [living_room(), large_graph(80, 40, seed=2)])
def test_the_accuracy_is_scaled_from_the_best_floor(graph):
    truth = ground_truth_of(graph)
    questions = questions_about(truth, scene='s', seed=5)
    asked = QuestionedMap.in_scene(as_map(graph), truth, None)
    found = score_answers(asked, questions)
    overall = {item.metric: item for item in found if not item.class_name}
    floors = [overall[name].value for name in FLOORS]
    assert all(0 < value < 0.6 for value in floors)
    assert overall['accuracy_above_floor'].value == overall['accuracy'].value == 1.0
    lost = QuestionedMap(asked.references['floor_permuted_names'], asked.references)
    found = score_answers(lost, questions)
    above = next(item for item in found if item.metric == 'accuracy_above_floor')
    best = max(floors)
    assert above.value == pytest.approx((floors[2] - best) / (1 - best))
    assert above.low < above.value < above.high
