"""The suite: records of one map, files beside it, the same questions for every map."""

import numpy as np
import pytest
from furnished_graph import as_map, living_room, seen, vocabulary

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.registry import make_suite
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.question_files import read_records
from osmabench_ros.vqa.questions import Answer, Question, Verdict


def ground_truth():
    nothing = LabelledCloud(
        np.zeros((0, 3), np.float32), np.zeros(0, np.int32), np.zeros(0, np.int32)
    )
    graph = living_room()
    return GroundTruth(
        'test', 'room', vocabulary(graph), graph, nothing, nothing, (),
        Intrinsics.from_hfov(64, 48, 1.5), tuple(sorted(seen(graph))),
    )  # fmt: skip


def context(semantic_map, **more):
    return SuiteContext('room', semantic_map, ground_truth(), seed=3, **more)


def test_a_perfect_map_scores_the_ceiling_and_leaves_its_files(tmp_path):
    graph = living_room()
    suite = make_suite('exact_questions', {'count': 60})
    found = suite.evaluate(context(as_map(graph, vocabulary(graph)), output_directory=tmp_path))
    overall = {r.metric: r for r in found if not r.class_name}
    assert overall['accuracy'].value == overall['ceiling_ground_truth'].value == 1.0
    assert overall['accuracy'].n == 60
    ids = [q.id for q in read_records(tmp_path / 'questions.jsonl', Question)]
    assert [a.question_id for a in read_records(tmp_path / 'answers.jsonl', Answer)] == ids
    assert [v.question_id for v in read_records(tmp_path / 'verdicts.jsonl', Verdict)] == ids


def test_given_questions_are_asked_instead_of_new_ones():
    suite = make_suite('exact_questions', {'count': 40, 'embedding': 'off'})
    first = context(as_map(living_room()))
    (question, *_) = suite._questions(first)
    again = context(as_map(SceneGraph()), questions=[question])
    (overall,) = [r for r in suite.evaluate(again) if r.metric == 'accuracy' and not r.class_name]
    assert overall.n == 1


def test_a_wrong_option_is_named():
    with pytest.raises(ConfigError, match='embeding'):
        make_suite('exact_questions', {'embeding': 'on'})
