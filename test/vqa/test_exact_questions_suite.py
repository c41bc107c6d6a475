"""The suite: records of one map, files next to it, the same questions for every map."""

import json
from dataclasses import replace

import pytest
from support import scripted_model
from support.loopback_models import LoopbackModels
from support.world.graphs import as_map, ground_truth_of, living_room, seen, vocabulary

from osmabench_ros.base.files import claim_folder
from osmabench_ros.suites.suite import SuiteContext, make_suite
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.exact.generation import EXACT, generate_questions
from osmabench_ros.vqa.exact.view import SceneView
from osmabench_ros.vqa.question_files import read_records
from osmabench_ros.vqa.questions import Answer, Question, Verdict


def context(semantic_map, **more):
    return SuiteContext('room', semantic_map, ground_truth_of(living_room()), seed=3, **more)


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


@pytest.mark.parametrize(('unseen', 'best'), [((), 1.0), (('color',), 0.95)])
def test_fair_ceilings_are_those_of_visible_parts_with_and_without_materials(unseen, best):
    graph = living_room()
    parts = ground_truth_map(graph, seen(graph), without=unseen).graph
    truth = replace(ground_truth_of(living_room()), visible_graph=parts)
    suite = make_suite('exact_questions', {})
    attributes = replace(EXACT, categories=('Object Attributes',))
    view = SceneView(graph, seen(graph))
    questions = generate_questions(view, scene='room', seed=3, asked=attributes)
    here = context(as_map(graph, vocabulary(graph)), questions=questions)
    found = suite.evaluate(replace(here, ground_truth=truth))
    overall = {r.metric: r.value for r in found if not r.class_name}
    assert overall['ceiling_ground_truth'] == 1.0
    assert overall['ceiling_camera'] < overall['ceiling_visible'] <= best


def test_given_questions_are_asked_instead_of_new_ones():
    suite = make_suite('exact_questions', {'count': 40, 'embedding': 'off'})
    first = context(as_map(living_room()))
    (question, *_) = suite.list_questions(first)
    again = context(as_map(living_room()), questions=[question])
    (overall,) = [r for r in suite.evaluate(again) if r.metric == 'accuracy' and not r.class_name]
    assert overall.n == 1


def test_a_model_may_answer_and_judge_within_a_run(tmp_path, monkeypatch):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    graph = living_room()
    claim_folder(tmp_path)
    with LoopbackModels(reply=scripted_model.reply) as server:
        suite = make_suite('exact_questions', {
            'count': 40, 'answerer': 'openai:m', 'judge': 'openai:m', 'base_url': server.url,
            'cache': str(tmp_path / 'cache'), 'graph_tokens': 500,
        })  # fmt: skip
        here = context(as_map(graph, vocabulary(graph)), output_directory=tmp_path)
        found = suite.evaluate(here)
        asked = len(server.received)
        assert suite.evaluate(here) == found
        assert len(server.received) == asked, 'a second run is answered from the cache'
    overall = {r.metric: r for r in found if not r.class_name}
    assert overall['accuracy'].value < 0.6
    assert overall['ceiling_ground_truth'].value == 1.0, 'the rules answer from the ground truth'
    assert 0 < overall['unread_nodes'].value < 1
    assert not overall['unread_nodes'].higher_is_better
    answering = json.loads((tmp_path / 'answering.json').read_text())
    assert answering['answerer'] == 'openai/m'
    assert answering['dropped_nodes'] == round(overall['unread_nodes'].value * len(graph.nodes))
    assert json.loads((tmp_path / 'judging.json').read_text())['prompt'].startswith('judge_')
