"""From questions and a map to records: joined by id, with baselines and floors."""

from collections import Counter
from types import SimpleNamespace

import pytest
from support.benchmark_scripts import benchmark_script
from support.world.graphs import (
    as_map,
    ground_truth_of,
    large_graph,
    living_room,
    seen,
    vocabulary,
)

from osmabench_ros.base.files import read_json
from osmabench_ros.base.progress import share, silent
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.vqa import evaluation
from osmabench_ros.vqa.answering import baselines
from osmabench_ros.vqa.answering.baselines import TABLE, answer_from_text
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.evaluation import QuestionedMap, answer_all, judge_all, scored
from osmabench_ros.vqa.exact.generation import generate_questions, questions_about
from osmabench_ros.vqa.exact.view import SceneView
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.kinds import Query, QueryKind
from osmabench_ros.vqa.question_files import ANSWERS, VERDICTS, read_complete
from osmabench_ros.vqa.questions import Answer, AnswerType, Category, Question, Verdict
from osmabench_ros.vqa.scores import FUNCTIONAL, SPATIAL, UNSERVED
from osmabench_ros.vqa.wording import evidence_of

GRAPH = living_room()
QUESTIONS = generate_questions(
    SceneView(GRAPH, seen(GRAPH), label_set=vocabulary(GRAPH)), scene='room', seed=2
)


def evaluate_questions(
    semantic_map, answerer=None, judge=None, directory=None, progress=silent, **references
):
    """Ask, judge and score as suites of questions do, by rule."""
    asked = evaluation.QuestionedMap(semantic_map, references)
    answerer, judge = answerer or RuleAnswerer(), judge or DeterministicJudge()
    answers = evaluation.answer_and_keep(
        directory, asked.semantic_map, QUESTIONS, answerer, share(progress, 0.0, 0.55)
    )
    told = share(progress, 0.55, 0.65)
    verdicts = evaluation.judge_and_keep(directory, QUESTIONS, answers, judge, told)
    records = evaluation.scored(asked, QUESTIONS, verdicts, suite='exact_questions')
    return SimpleNamespace(answers=answers, verdicts=verdicts, records=records)


@pytest.fixture(scope='module')
def result():
    ceiling = baselines.ground_truth_map(GRAPH, seen(GRAPH))
    return evaluate_questions(as_map(GRAPH), ceiling_ground_truth=ceiling)


def record(result, metric, category=''):
    (found,) = [r for r in result.records if (r.metric, r.class_name) == (metric, category)]
    return found


def test_the_perfect_map_is_right_and_constants_are_far_below(result):
    assert record(result, 'accuracy').value == 1.0
    assert record(result, 'ceiling_ground_truth').value == 1.0
    yes, no = (record(result, f'baseline_always_{word}').value for word in ('yes', 'no'))
    assert yes == no < 0.5
    assert yes < record(result, 'baseline_most_frequent').value < 0.6
    assert record(result, 'baseline_question_only').value < 0.65
    assert record(result, 'accuracy').low > record(result, 'baseline_question_only').high


def test_categories_that_the_map_holds_nothing_for_are_not_asked_and_wrong():
    found = evaluate_questions(as_map(SceneGraph(GRAPH.nodes)))
    unserved = {item.id for item in QUESTIONS if item.category in SPATIAL | FUNCTIONAL}
    assert 0 < len(unserved) < len(QUESTIONS)
    assert {item.question_id for item in found.answers if item.note == UNSERVED} == unserved
    assert {item.question_id for item in found.verdicts if item.reason == UNSERVED} == unserved
    assert not record(found, 'accuracy', Category.RELATIONS_SPATIAL.value).applicable
    assert record(found, 'accuracy').n == len(QUESTIONS)
    assert record(found, 'accuracy').value <= 1 - len(unserved) / len(QUESTIONS)
    assert record(found, 'accuracy_served').n == len(QUESTIONS) - len(unserved)


class Nobody:
    """Answers and judges nothing, as nothing may be asked."""

    name = 'nobody'
    answer = judge = None


def test_nothing_is_asked_of_a_map_without_nodes_and_no_accuracy_is_applicable(tmp_path):
    bare = evaluate_questions(as_map(SceneGraph()), Nobody(), Nobody(), tmp_path)
    own = ('accuracy', 'accuracy_answered', 'accuracy_served', 'accuracy_macro', 'unanswered')
    found = [item for item in bare.records if item.metric in own]
    assert {item.value for item in found} == {None}
    assert {item.applicable for item in found} == {False}
    for file, kind in ((ANSWERS, Answer), (VERDICTS, Verdict)):
        found = read_complete(tmp_path / file, kind)
        assert len(found) == len(QUESTIONS)
        assert {getattr(item, 'note', '') or item.reason for item in found} == {UNSERVED}


def test_every_category_has_its_records(result):
    overall_only = ('accuracy_served', 'accuracy_macro')
    metrics = Counter(r.class_name for r in result.records if r.metric not in overall_only)
    assert set(metrics) == {'', *(q.category for q in QUESTIONS)}
    # Overall, colours, materials and the rest too, and the accuracy above the floor.
    assert metrics.pop('') == 9 + 3 + 1
    assert set(metrics.values()) == {9}


def test_no_category_is_given_away_by_its_wording():
    scenes = []
    for seed in range(6):
        graph = large_graph(60, 30, seed=seed)
        scenes += generate_questions(SceneView(graph, seen(graph)), scene=f's{seed}', seed=seed)
    binary = [q for q in scenes if q.answer_type is AnswerType.YES_NO]
    guesses = {a.question_id: a.value for a in baselines.question_only(binary)}
    for category in sorted({q.category for q in binary}):
        own = [q for q in binary if q.category == category]
        share = sum(guesses[q.id] == q.answer for q in own) / len(own)
        # Thresholds and affordances tell something by themselves; a wording must not.
        assert share < 0.8, f'{category}: {share:.2f} of {len(own)} without a map'


class Careless:
    """Answers in another order, leaves some out, repeats some, invents ids."""

    name = 'careless'

    def answer(self, semantic_map, inquiries, progress):
        given = [Answer(item.id, f'to {item.text}', self.name) for item in inquiries[1:]]
        return [Answer('q-unknown', 'x', self.name), *reversed(given), *given[:2]]


def test_answers_are_joined_by_id_whatever_comes_back():
    answers = evaluation.answer_all(as_map(GRAPH), QUESTIONS, Careless())
    assert [a.question_id for a in answers] == [q.id for q in QUESTIONS]
    assert all(a.value in (None, f'to {q.text}') for a, q in zip(answers, QUESTIONS, strict=True))
    assert answers[0].value is None
    assert sum(a.value is None for a in answers) == 1


def test_the_rule_answerer_tells_how_far_it_is():
    reported = []
    evaluate_questions(as_map(GRAPH), progress=lambda *told: reported.append(told))
    total = len(QUESTIONS)
    assert reported[:3] == [
        (f'answered {n} of {total} questions', pytest.approx(0.55 * n / total))
        for n in (0, 20, 40)
    ]
    assert reported[-1] == (f'judged {total} of {total} answers', pytest.approx(0.65))
    assert [fraction for _, fraction in reported] == sorted(fraction for _, fraction in reported)


class Silent:
    """A judge that loses verdicts."""

    name = 'silent'

    def judge(self, pairs, progress):
        return []


def test_a_lost_verdict_stays_in_the_denominator():
    verdicts = evaluation.judge_all(QUESTIONS, baselines.constant(QUESTIONS, 'yes'), Silent())
    assert len(verdicts) == len(QUESTIONS)
    assert not any(v.correct or v.answered for v in verdicts)


def _question(number, text, answer, category='c', scene='s'):
    kind = AnswerType.YES_NO
    return Question(f'q{number}', 'x', scene, category, text, kind, answer)


def test_the_question_only_baseline_finds_what_the_wording_gives_away():
    telling = [
        _question(i, f'Is the {c} thing {i} here?', 'yes' if c == 'red' else 'no')
        for i in range(60)
        for c in (('red', 'blue')[i % 2],)
    ]
    right = {q.id: q.answer for q in telling}
    answers = baselines.question_only(telling)
    assert sum(a.value == right[a.question_id] for a in answers) == 60
    noise = [
        _question(i, f'Is thing {i * 7919 % 61} here?', ('yes', 'no')[i % 2]) for i in range(60)
    ]
    assert [a.question_id for a in baselines.question_only(noise)] == [q.id for q in noise]


def test_the_question_only_baseline_never_learns_from_the_scene_it_answers():
    taught = [_question(i, 'Is it warm?', 'yes', scene='a') for i in range(5)]
    other = [_question(i + 10, 'Is it warm?', 'no', scene='b') for i in range(5)]
    values = {a.question_id: a.value for a in baselines.question_only([*taught, *other])}
    assert {values[q.id] for q in taught} == {'no'}
    assert {values[q.id] for q in other} == {'yes'}


def test_the_most_frequent_answer_is_taken_by_category():
    asked = [
        _question(i, f't{i}', answer, category)
        for i, (answer, category) in enumerate(
            [('yes', 'a'), ('yes', 'a'), ('no', 'a'), ('no', 'b'), ('no', 'b'), ('yes', 'b')]
        )
    ]
    assert [a.value for a in baselines.most_frequent(asked)] == ['yes'] * 3 + ['no'] * 3


def test_figures_are_told_apart_by_the_colours_and_materials_that_they_rest_on(result):
    parts = [record(result, f'accuracy_{name}') for name in ('colors', 'materials', 'rest')]
    assert sum(part.n for part in parts) == len(QUESTIONS)
    assert all(part.n and part.value == 1.0 for part in parts)
    bare = baselines.ground_truth_map(GRAPH, seen(GRAPH), without=('material',)).graph
    found = evaluate_questions(as_map(bare))
    assert record(found, 'accuracy_materials').value < 0.5
    assert record(found, 'accuracy_colors').value == record(found, 'accuracy_rest').value == 1.0


@pytest.mark.parametrize(
    ('query', 'part'),
    [
        (Query(QueryKind.COLOR_OF, ('chair',)), 'colors'),
        (Query(QueryKind.EXISTS, ('light blue chair',)), 'colors'),
        (Query(QueryKind.HAS_MATERIAL, ('chair',), 'wood'), 'materials'),
        (Query(QueryKind.HEIGHT, ('wooden chair',)), 'materials'),
        (Query(QueryKind.COUNT, ('red wooden chair',)), 'colors'),
        (Query(QueryKind.CLOSER, ('orange', 'chair', 'sofa')), 'rest'),
    ],
)
def test_what_a_question_rests_on_is_read_from_its_meaning(query, part):
    assert evidence_of(query) == part


def test_random_names_keep_shapes_and_answer_hardly_anything_by_name():
    labels = vocabulary(GRAPH, *(f'thing {i}' for i in range(60)))
    drawn = baselines.with_random_labels(as_map(GRAPH), labels).graph
    structure = {item.name for item in labels.classes if item.structure}
    for node, true in zip(drawn.nodes, GRAPH.nodes, strict=True):
        assert (node.id, node.box) == (true.id, true.box)
        assert (node.label in structure) == (true.label in structure)
    kept = [n.label == t.label for n, t in zip(drawn.nodes, GRAPH.nodes, strict=True)]
    assert sum(kept) <= 4  # two parts of the building, and chance
    assert record(evaluate_questions(as_map(drawn)), 'accuracy').value < 0.5


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
