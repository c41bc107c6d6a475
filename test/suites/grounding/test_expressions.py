"""Referring expressions: their words, what they mean, and what maps answer."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.figures import figures
from support.loopback_models import LoopbackModels
from support.world.scenes import CAMERA, colored_box, furnished_room, truth_of_room

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import FeatureSpace
from osmabench_ros.sequences.ground_truth import build_ground_truth
from osmabench_ros.suites.grounding.expressions import (
    CLUES,
    LENGTHS,
    Clause,
    Expression,
    RankingAnswerer,
    asked,
    grounding_questions,
    off_between_m,
    rank_by_clauses,
    read_expression,
)
from osmabench_ros.suites.grounding.suite import list_difficulties
from osmabench_ros.suites.suite import SuiteContext, make_suite
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.evaluation import locate
from osmabench_ros.vqa.questions import Answer, AnswerType, Inquiry

STOOLS = (
    ('red', (1.0, -1.2, 0), (1.35, -0.85, 0.45)),
    ('blue', (-2.4, -2.4, 0), (-1.8, -1.8, 0.9)),
    ('white', (-0.1, 0.6, 0), (0.25, 0.95, 0.45)),
)


@pytest.fixture(scope='module')
def truth():
    """A room with four stools, all unlike."""
    room = furnished_room()
    more = [colored_box(number, 'stool', *item) for number, item in enumerate(STOOLS, start=20)]
    scene = replace(room, objects=(*room.objects, *more))
    return build_ground_truth(scene, truth_of_room().camera_poses, CAMERA)


@pytest.fixture(scope='module')
def questions(truth):
    return grounding_questions(truth, scene='room', seed=3, targets=12)


def perfect_map(truth):
    return ground_truth_map(truth.visible_graph, truth.seen_instances, truth.label_set)


def scored(semantic_map, truth, questions, **more):
    context = SuiteContext('room', semantic_map, truth, questions=questions, **more)
    return figures(make_suite('grounding'), context, applicable=True)


@pytest.mark.parametrize(('text', 'expression'), [
    ('the red chair between the table and the blue vase',
     Expression('red chair', (Clause('between', ('table', 'blue vase')),))),
    ('the chair closest to the sofa of its kind, next to the lamp',
     Expression('chair', (Clause('closest to', ('sofa',)), Clause('next to', ('lamp',))))),
    ('the chair, the tallest of its kind, on the set of stairs',
     Expression('chair', (Clause('tallest'), Clause('on', ('stairs',))))),
    ('the chair second closest to the desk of its kind',
     Expression('chair', (Clause('second closest to', ('desk',)),))),
    ('the lamp', Expression('lamp')),
])  # fmt: skip
def test_an_expression_reads_back(text, expression):
    assert expression.text == text
    assert read_expression(text) == expression


PHRASES = st.sampled_from(('chair', 'light blue tv stand', 'stairs', 'wooden shelf', 'glass'))
CLAUSES = st.sampled_from(sorted(CLUES)).flatmap(
    lambda word: st.builds(
        Clause, st.just(word), st.tuples(*[PHRASES] * CLUES[word].text.count('{'))
    )
)


@given(PHRASES, st.lists(CLAUSES, max_size=3))
def test_all_clauses_read_back_in_any_order(phrase, clauses):
    expression = Expression(phrase, tuple(clauses))
    assert read_expression(expression.text) == expression


@pytest.mark.parametrize('text', ['a chair', 'the chair, which is mine', 'the chair on the'])
def test_other_words_are_not_read_as_clauses(text):
    read = read_expression(text)
    assert read is None or not read.clauses


def test_between_is_on_the_way_and_beside_it_within_half_a_metre():
    def at(x, y):
        return AxisAlignedBox(np.array([x - 0.1, y - 0.1, 0]), np.array([x + 0.1, y + 0.1, 1]))

    ends = at(0, 0), at(4, 0)
    assert off_between_m(at(2, 0.3), *ends) == pytest.approx(-0.2)
    assert off_between_m(at(2, -0.9), *ends) == pytest.approx(0.4)
    assert off_between_m(at(0.5, 0), *ends) == pytest.approx(0.3)
    assert off_between_m(at(5, 0), *ends) == pytest.approx(1.8)


@pytest.mark.parametrize(('text', 'target'), [
    ('the red stool', 20),
    ('the stool, the largest of its kind', 21),
    ('the stool closest to the box of its kind', 20),
    ('the stool farthest from the sofa of its kind', 20),
    ('the stool second closest to the sofa of its kind', 21),
    ('the stool between the desk and the shelf', 22),
    ('the stool next to the desk', 21),
])  # fmt: skip
def test_rules_find_what_is_meant(truth, text, target):
    """The last one says what holds for none: the first that is there comes first."""
    inquiry = Inquiry('q', asked(text), AnswerType.BOX)
    (answer,) = RankingAnswerer('rule', rank_by_clauses).answer(perfect_map(truth), [inquiry])
    assert set(answer.nodes) == {11, 20, 21, 22}
    if text != 'the stool next to the desk':
        assert answer.nodes[0] == target


def test_targets_are_proved_from_the_boxes_of_the_scene(truth, questions):
    """A second computation from the objects: exactly one stool is what the first clause says."""
    room = furnished_room()
    boxes = {item.instance_id: item.box for item in room.objects}
    names = {item.instance_id: room.class_name(item) for item in room.objects}
    more = {n: colored_box(n, 'stool', *item) for n, item in enumerate(STOOLS, start=20)}
    boxes |= {n: item.box for n, item in more.items()}
    stools = [key for key in boxes if names.get(key, 'stool') == 'stool']
    assert len({item.provenance['target'] for item in questions}) >= 10
    proved = 0
    for item in questions:
        said = read_expression(item.provenance['expression'])
        target = int(item.provenance['target'])
        if target not in stools or not said.clauses:
            continue
        clause = said.clauses[0]
        anchors = [key for key, name in names.items() if name == clause.phrases[0].split()[-1]] \
            if clause.phrases else []  # fmt: skip
        if clause.word.endswith('closest to') or clause.word == 'farthest from':
            away = {k: np.linalg.norm(boxes[k].center - boxes[anchors[0]].center) for k in stools}
            order = sorted(stools, key=away.get)
            places = {'closest to': 0, 'second closest to': 1, 'third closest to': 2}
            assert order[places.get(clause.word, -1)] == target, said.text
        elif clause.word in ('largest', 'smallest'):
            pick = max if clause.word == 'largest' else min
            assert pick(stools, key=lambda key: boxes[key].volume) == target
        proved += 1
    assert proved >= 3


def test_expressions_of_a_target_grow_and_all_hold(questions):
    by_target = {}
    for item in questions:
        by_target.setdefault(item.provenance['target'], []).append(item)
    for items in by_target.values():
        assert [x.provenance['length'] for x in items] == list(LENGTHS[: len(items)])
        counts = [len(read_expression(x.provenance['expression']).clauses) for x in items]
        assert counts == [counts[0] + more for more in range(len(counts))]
        assert len({x.answer for x in items}) == 1
    lengths = {item.provenance['length'] for item in questions}
    assert lengths == set(LENGTHS)
    assert {item.provenance['same_class'] for item in questions} == {'1', '4'}


def test_a_perfect_map_finds_all_and_others_less(truth, questions):
    found = scored(perfect_map(truth), truth, questions)
    for mode in ('compat', 'strict'):
        assert found[mode, 'acc_05', ''].value == 1.0
    for group in ('unique', 'multiple', 'hard', 'short', 'long'):
        assert found['strict', 'acc_025', group].value == 1.0
    assert found['strict', 'mean_rank', ''].value == 1.0
    assert found['strict', 'center_distance_m', ''].value < 0.01
    assert found['strict', 'ceiling_visible_acc_05', ''].value == 1.0
    assert 0.25 < found['strict', 'baseline_random_of_class', ''].value < 1.0
    # Boxes that are off by half, and a stool that is missing.
    known = perfect_map(truth)
    shift = np.array([0.12, 0.0, 0.0])
    nodes = tuple(
        replace(n, box=AxisAlignedBox(n.box.minimum + shift, n.box.maximum + shift))
        if n.box is not None
        else n
        for n in known.graph.nodes
        if n.id != 21
    )
    edges = tuple(e for e in known.graph.edges if 21 not in (e.source, e.target))
    worse = scored(
        replace(known, graph=replace(known.graph, nodes=nodes, edges=edges)), truth, questions
    )
    assert worse['strict', 'acc_05', ''].value < found['strict', 'acc_05', ''].value
    assert worse['strict', 'center_distance_m', 'unique'].value == pytest.approx(0.12, abs=0.01)


def test_a_map_without_names_answers_by_text_features(truth, questions):
    """The encoder knows colours of stools alone, and gives every other text the first of them."""
    known = perfect_map(truth)
    ids = {11: 'yellow', 20: 'red', 21: 'blue', 22: 'white'}
    nodes = tuple(
        replace(n, labels=(), feature_row=list(ids).index(n.id), feature_space='clip')
        if n.id in ids
        else replace(n, labels=())
        for n in known.graph.nodes
    )
    space = FeatureSpace('clip', np.eye(4, dtype=np.float32), 'toy')
    unnamed = replace(
        known, graph=replace(known.graph, nodes=nodes), feature_spaces={'clip': space}
    )
    asked_for = [
        item
        for item in questions
        if item.provenance['expression'] in {f'the {color} stool' for color in ids.values()}
    ]
    assert asked_for

    def encoder(_space, texts):
        colors = list(ids.values())
        words = [next((w for w in text.split() if w in colors), 'yellow') for text in texts]
        return np.eye(4, dtype=np.float32)[[colors.index(word) for word in words]]

    found = scored(unnamed, truth, asked_for, text_encoder=encoder)
    assert found['strict', 'acc_05', 'attribute'].value == 1.0
    assert found['strict', 'mean_rank', ''].value == 1.0


def test_what_models_say_is_a_box_or_a_node(truth):
    graph = perfect_map(truth).graph
    given = [
        Answer('a', '0, 0, 0, 1, 1, 1', 'm', nodes=(20,)),
        Answer('b', 'the red stool, node 20', 'm', nodes=(99, 20)),
        Answer('c', None, 'm'),
    ]
    boxes = [locate(answer, graph).value for answer in given]
    assert boxes[0] == (0, 0, 0, 1, 1, 1)
    assert boxes[1][:3] == tuple(graph.by_id[20].box.minimum)
    assert boxes[2] is None


def test_a_model_that_names_nodes_is_scored_by_their_boxes(truth, questions, tmp_path):
    def name_nodes(prompt):
        return json.dumps({'answers': [
            {'id': item.id, 'answer': 'the one', 'nodes': item.evidence.nodes}
            for item in questions if item.id in prompt
        ]})  # fmt: skip

    with LoopbackModels(name_nodes) as server:
        options = {'answerer': 'openai:m', 'base_url': server.url, 'cache': str(tmp_path)}
        context = SuiteContext('room', perfect_map(truth), truth, questions=questions)
        found = figures(make_suite('grounding', options), context)
    assert found['strict', 'acc_05', ''].value == 1.0


def test_difficulty_is_as_published():
    assert list_difficulties(1) == ('unique',)
    assert list_difficulties(2) == ('multiple', 'easy')
    assert list_difficulties(3) == ('multiple', 'hard')
