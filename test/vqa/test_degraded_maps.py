"""Exact questions weigh which object is where: maps that lack it lose what rests on it."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support.world.graphs import as_map, ground_truth_of, large_graph, living_room, vocabulary

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.scene_graph import ScoredLabel
from osmabench_ros.vqa.answering.baselines import keep_inventory, permute_names
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.evaluation import answer_all, judge_all
from osmabench_ros.vqa.exact.generation import questions_about
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge


def fill_scene(graph):
    low = np.min([node.box.minimum for node in graph.nodes], axis=0)
    high = np.max([node.box.maximum for node in graph.nodes], axis=0)
    return change(graph, lambda node: replace(node, box=AxisAlignedBox(low, high)))


def remove_boxes(graph):
    return change(graph, lambda node: replace(node, box=None))


def draw_a_third_of_the_names(graph):
    rng, names = np.random.default_rng(0), [node.label for node in graph.nodes]

    def drawn(node):
        named = (ScoredLabel(str(rng.choice(names))),)
        return node if node.id % 3 else replace(node, labels=named)

    return change(graph, drawn)


def mirror(graph):
    sign = np.array([-1, 1, 1])

    def mirrored(node):
        ends = np.sort([sign * node.box.minimum, sign * node.box.maximum], axis=0)
        return replace(node, box=AxisAlignedBox(*ends))

    return change(graph, mirrored)


def change(graph, changed):
    return replace(graph, nodes=tuple(map(changed, graph.nodes)))


@pytest.mark.parametrize(
    'graph', [living_room(), large_graph(80, 40, seed=2)], ids=['room', 'hall']
)
@pytest.mark.parametrize(
    ('degrade', 'most'),
    [(fill_scene, 0.7), (remove_boxes, 0.5), (mirror, 0.88), (draw_a_third_of_the_names, 0.9)],
)
def test_maps_without_identity_or_place_lose(graph, degrade, most):
    questions = questions_about(ground_truth_of(graph), scene='s', seed=5)
    right, degraded = (
        accuracy(as_map(made, vocabulary(graph)), questions) for made in (graph, degrade(graph))
    )
    assert right == 1.0
    assert degraded <= most


@pytest.mark.parametrize(
    ('degrade', 'least', 'most'), [(permute_names, 0.2, 0.5), (keep_inventory, 0.1, 0.25)]
)
def test_floors_know_names_and_not_places(degrade, least, most):
    graph = living_room()
    questions = questions_about(ground_truth_of(graph), scene='s', seed=5)
    degraded = degrade(as_map(graph, vocabulary(graph)))
    assert Counter(map(label_of, degraded.graph.nodes)) == Counter(map(label_of, graph.nodes))
    assert least <= accuracy(degraded, questions) <= most


def label_of(node):
    return node.label


def accuracy(semantic_map, questions):
    answers = answer_all(semantic_map, questions, RuleAnswerer())
    verdicts = judge_all(questions, answers, DeterministicJudge())
    return float(np.mean([verdict.correct for verdict in verdicts]))
