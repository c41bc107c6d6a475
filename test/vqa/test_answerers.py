"""Answerers by name: of this package, of others, and what each shows to its language model."""

import base64
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.distributions import install_distribution
from support.loopback_models import cached_client
from support.world.graphs import as_map, ground_truth_of, living_room, seen, thing, vocabulary

from osmabench_ros.base.configuration import ANSWERERS, extension_names
from osmabench_ros.errors import ConfigError, QuestionError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.suites.suite import SuiteContext, make_suite
from osmabench_ros.vqa.answering.answerer import AnsweringMaterial, make_answerer, parse_reference
from osmabench_ros.vqa.answering.baselines import most_frequent, question_only
from osmabench_ros.vqa.answering.language_model import caption, question_data
from osmabench_ros.vqa.answering.pictures import (
    MOST_PX,
    camera_at,
    four_views,
    photo,
    top_view_of,
    view_of_points,
)
from osmabench_ros.vqa.evaluation import answer_all, baseline_answers
from osmabench_ros.vqa.question_files import read_records
from osmabench_ros.vqa.questions import Answer, AnswerType, Inquiry, Question, Unit, inquiry

GRAPH = living_room()
ASKED = [Inquiry(f'q{i}', f'Is there a sofa {i}?', AnswerType.YES_NO) for i in range(12)]


@pytest.fixture
def material(server, tmp_path, monkeypatch):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    return AnsweringMaterial(cached_client(server, tmp_path))


def context(**more):
    semantic_map = as_map(GRAPH, vocabulary(GRAPH))
    return SuiteContext('room', semantic_map, ground_truth_of(GRAPH), seed=3, **more)


def test_the_answerer_of_the_docs_is_found_and_takes_the_first_option(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / 'docs' / 'answerers.md').read_text()
    code = re.search(r'```python\n(.*?)```', page, re.DOTALL)[1]
    points = {ANSWERERS: ['first_option = their_answerer:FirstOption']}
    install_distribution(tmp_path, monkeypatch, points, their_answerer=code)
    assert {'first_option', 'rule', 'tools'} <= set(extension_names(ANSWERERS))
    answerer = make_answerer('first_option', AnsweringMaterial(), {'loud': True})
    asked = choice(0, 'lamp')
    assert [a.value for a in answer_all(as_map(GRAPH), [asked], answerer)] == ['sofa']
    assert len(answerer.answer(as_map(GRAPH), [inquiry(asked), ASKED[0]])) == 1
    folder = tmp_path / 'vqa'
    folder.mkdir()
    suite = make_suite('exact_questions', {'answerer': 'first_option', 'count': 30})
    assert suite.language_models == ()
    suite.evaluate(context(output_directory=folder))
    answers = read_records(folder / 'answers.jsonl', Answer)
    assert {(answer.value, answer.answerer) for answer in answers} == {(None, 'first_option')}


@pytest.mark.parametrize(
    ('reference', 'parsed'),
    [
        ('rule', ('rule', '')),
        ('openai:qwen3', ('graph', 'openai:qwen3')),
        ('offline:openai/qwen3', ('graph', 'offline:openai/qwen3')),
        ('tools:openai:qwen3:8b', ('tools', 'openai:qwen3:8b')),
    ],
)
def test_a_model_alone_reads_the_graph(reference, parsed):
    assert parse_reference(reference) == parsed


@pytest.mark.parametrize(
    ('options', 'fault'),
    [
        ({'embeding': 'on'}, 'embeding'),
        ({'answerer': 'rul'}, 'no answerer "rul".*rule'),
        ({'answerer': 'gemni:x'}, 'no language model "gemni"'),
        ({'answerer': 'caption'}, 'caption:openai:qwen3'),
        ({'answerer': 'rule', 'answerer_options': {'count': 1}}, 'count'),
        ({'answerer': 'frames:openai:m', 'answerer_options': {'count': 0}}, 'count'),
        ({'baselines': ['caption:openai:a', 'caption:openai:b']}, 'name each answerer once'),
    ],
)
def test_wrong_answerers_and_options_are_named_before_anything_runs(monkeypatch, options, fault):
    monkeypatch.setenv('OPENAI_API_KEY', 'sk-0123456789')
    with pytest.raises(ConfigError, match=fault):
        make_suite('exact_questions', options)


def test_baselines_by_model_stand_beside_the_score_with_their_models(server, tmp_path):
    suite = make_suite('exact_questions', {
        'count': 30, 'embedding': 'off', 'base_url': server.url, 'cache': str(tmp_path / 'cache'),
        'baselines': ['question_only:openai:m', 'caption:openai:m'],
    })  # fmt: skip
    assert suite.language_models == ('openai:m',)
    records = [r for r in suite.evaluate(context()) if not r.class_name]
    found = {r.metric: r for r in records}
    assert len(found) == len(records), 'no figure is there twice'
    assert found['accuracy'].value == 1.0, 'the rules answer'
    assert found['baseline_asked_question_only'].value is not None
    assert found['baseline_asked_caption'].value < 1.0


def test_conversations_without_an_end_are_counted_beside_the_accuracy(server, tmp_path):
    server.act = lambda request: [('list_rooms', '{}')]
    folder = tmp_path / 'vqa'
    folder.mkdir()
    suite = make_suite('exact_questions', {
        'count': 12, 'answerer': 'tools:openai:m', 'answerer_options': {'rounds': 2},
        'base_url': server.url, 'cache': str(tmp_path / 'cache'),
    })  # fmt: skip
    found = {r.metric: r for r in suite.evaluate(context(output_directory=folder))
             if not r.class_name}  # fmt: skip
    assert found['incomplete_answers'].value == 1.0
    assert found['accuracy'].value == 0.0
    summary = json.loads((folder / 'answering.json').read_text())
    assert summary['incomplete'] == {'no answer within 2 rounds of tools': 12}
    answers = read_records(folder / 'answers.jsonl', Answer)
    assert all(len(answer.transcript) == 2 for answer in answers)


def sent_images(received):
    """Return the pictures of a request."""
    content = received.body['messages'][-1]['content']
    urls = [part['image_url']['url'] for part in content if part['type'] == 'image_url']
    return [Image.open(io.BytesIO(base64.b64decode(url.partition(',')[2]))) for url in urls]


def points():
    """A red floor of 4 x 2 m, a green block of 0.5 m on it at (1, 1), and a blue ceiling."""
    x, y = np.meshgrid(np.arange(0, 4, 0.02), np.arange(0, 2, 0.02), indexing='ij')
    floor = np.stack([x, y, 0 * x], -1).reshape(-1, 3)
    block = np.argwhere(np.ones((25, 25, 25))) * 0.02 + (0.75, 0.75, 0.0)
    both = np.concatenate([floor, block, np.add(floor, (0, 0, 2.6))]).astype(np.float32)
    colors = np.zeros(both.shape, np.uint8)
    colors[: len(floor)] = (255, 0, 0)
    colors[len(floor) : -len(floor)] = (0, 255, 0)
    colors[-len(floor) :] = (0, 0, 255)
    return DenseMap(both, colors)


MAPPED = replace(as_map(SceneGraph((thing(1, 'box', (0.75, 0.75, 0), (0.5, 0.5, 0.5)),))),
                 dense=points())  # fmt: skip


def test_a_camera_sees_what_is_in_front_of_it_and_near_things_hide_far_ones():
    camera = Intrinsics.from_hfov(64, 48, 1.2)
    spots = np.array([[2.0, 0, 1], [4.0, 0, 1], [2.0, 0.5, 1], [2.0, 0, 1.5], [-2.0, 0, 1]])
    colors = np.array([[255, 0, 0], [0, 0, 0], [0, 255, 0], [0, 0, 255], [9, 9, 9]], np.uint8)
    pose = camera_at((0.0, 0.0, 1.0), (2.0, 0.0, 1.0))
    image = view_of_points(spots, colors, pose, camera)
    assert tuple(image[24, 32]) == (255, 0, 0), 'in the middle, before the black one'
    rows, columns = np.nonzero((image == (0, 255, 0)).all(-1))
    assert columns.mean() == pytest.approx(31.5 - camera.fx * 0.5 / 2, abs=1), 'to the left'
    assert rows.mean() == pytest.approx(23.5, abs=1)
    rows, _ = np.nonzero((image == (0, 0, 255)).all(-1))
    assert rows.mean() == pytest.approx(23.5 - camera.fy * 0.5 / 2, abs=1), 'above'
    assert not (image == 9).all(-1).any(), 'nothing from behind'


@pytest.mark.parametrize('target', [(2.0, 3.0, 0.5), (0.0, 0.0, -3.0), (0.0, 0.0, 5.0)])
def test_the_target_is_in_the_middle_of_the_picture(target):
    camera = Intrinsics.from_hfov(65, 49, 1.2)
    seen_at = camera_at((0.1, 0.2, 1.0), target).inverse().transform(np.array([target]))
    assert seen_at[0, 2] > 0
    np.testing.assert_allclose(camera.project(seen_at), [[32, 24]], atol=1e-6)


def test_the_top_view_leaves_out_the_ceiling_and_names_objects():
    plain, axes = top_view_of(MAPPED, labels=False)
    assert 'x runs right from -0.20 to 4.18 m' in axes
    height, width = plain.shape[:2]
    assert width / height == pytest.approx(4.38 / 2.38, abs=0.02)
    assert not (plain == (0, 0, 255)).all(-1).any()
    rows, columns = np.nonzero((plain == (0, 255, 0)).all(-1))
    assert columns.mean() / width == pytest.approx(1.2 / 4.38, abs=0.01)
    assert rows.mean() / height == pytest.approx(1 - 1.2 / 2.38, abs=0.01)
    named, _ = top_view_of(MAPPED, labels=True)
    rows, columns = np.nonzero((named != plain).any(-1))
    assert columns.mean() / width == pytest.approx(1.2 / 4.38, abs=0.02)
    drawn, _ = top_view_of(as_map(GRAPH), labels=True)
    assert (drawn != 255).any(), 'a map without points shows its boxes'
    with pytest.raises(ValueError, match='no points and no boxes'):
        top_view_of(as_map(SceneGraph()), labels=True)


def test_four_views_show_the_block_from_four_sides():
    views = four_views(MAPPED)
    assert len(views) == 4
    for view in views:
        assert (view == (0, 255, 0)).all(-1).any()
        assert not (view == (0, 0, 255)).all(-1).any()
    assert not four_views(as_map(GRAPH))


def test_frames_are_chosen_along_the_path(server, material, tmp_path):
    for number in range(0, 100, 10):
        color = (number, 0, 0)
        Image.new('RGB', (8, 6), color).save(tmp_path / f'frame_{number:03}.png')
    answerer = make_answerer('frames', replace(material, frames=tmp_path), {'count': 3})
    answers = answerer.answer(MAPPED, ASKED)
    assert [answer.value for answer in answers] == ['Yes'] * 12
    assert [len(sent_images(r)) for r in server.received] == [3, 3]
    reds = [picture.getpixel((4, 3))[0] for picture in sent_images(server.received[0])]
    assert reds == [pytest.approx(red, abs=4) for red in (0, 40, 90)]
    assert 'frame 40 of the path' in server.received[0].prompt
    with pytest.raises(QuestionError, match='no frames'):
        make_answerer('frames', replace(material, frames=tmp_path / 'none'), {}).answer(
            MAPPED, ASKED
        )


@pytest.mark.parametrize(('name', 'count'), [('four_views', 4), ('top_view', 1)])
def test_views_of_the_map_go_with_the_questions(server, material, name, count):
    answers = make_answerer(name, material, {}).answer(MAPPED, ASKED[:2])
    assert answers[0].answerer == f'openai/m {name}'
    assert len(sent_images(server.received[0])) == count
    with pytest.raises(QuestionError, match='no points'):
        make_answerer(name, material, {}).answer(as_map(SceneGraph()), ASKED)


def test_a_caption_tells_the_graph_in_sentences_within_its_budget(server, material):
    sentences, dropped = caption(GRAPH, 100_000)
    assert (len(sentences), dropped) == (len(seen(GRAPH)), 0)
    cup = next(text for text in sentences if '(object 9)' in text.split(' is ')[0])
    assert 'on the ' in cup
    assert '(object 4)' in cup
    mug = replace(GRAPH.by_id[9], parent=None, captions=('eine weiße Tasse',))
    assert 'eine weiße Tasse' in caption(SceneGraph((mug,)), 100)[0][0]
    few, dropped = caption(GRAPH, 100)
    assert 0 < len(few) < len(sentences)
    assert dropped == len(sentences) - len(few)
    answerer = make_answerer('caption', material, {'graph_tokens': 100})
    answerer.answer(as_map(GRAPH), ASKED)
    assert answerer.summary['dropped_nodes'] == dropped
    assert few[0] in server.received[0].prompt
    assert sentences[-1] not in server.received[0].prompt


def test_what_only_some_questions_have_is_sent_with_these(server, material, tmp_path):
    Image.new('RGB', (3000, 500)).save(tmp_path / 'wide.png')
    plain = question_data(ASKED[0])
    assert plain == {'id': 'q0', 'question': 'Is there a sofa 0?', 'answer_type': 'yes_no'}
    shown = Inquiry('i', 'Which?', AnswerType.CHOICE, ('sofa', 'lamp'), Unit.NONE, ('wide.png',),
                    'The lamp was moved.')  # fmt: skip
    data = question_data(shown)
    assert data['options'] == {'A': 'sofa', 'B': 'lamp'}
    assert data['changed_since'] == 'The lamp was moved.'
    scripted = server.reply
    server.reply = lambda prompt: scripted(prompt.replace('"choice"', '"text"'))
    here = replace(material, question_images=tmp_path)
    make_answerer('graph', here, {}).answer(as_map(GRAPH), [*ASKED[:2], shown, *ASKED[2:4]])
    assert len(server.received) == 3, 'a question with an image is asked alone'
    (pictures,) = [sent_images(r) for r in server.received if 'lamp was moved' in r.prompt]
    assert pictures[0].size == (MOST_PX, round(MOST_PX * 500 / 3000))
    with pytest.raises(QuestionError, match=r'absent\.png'):
        photo(tmp_path / 'absent.png')


def choice(number, right):
    options = ('sofa', 'lamp', 'bed' if right in ('sofa', 'lamp') else right)
    kind = AnswerType.CHOICE
    return Question(f'q{number}', 's', 'r', 'c', 'Which one?', kind, right, options=options)


def test_baselines_of_choices_name_options():
    asked = [choice(0, 'lamp'), choice(1, 'lamp'), choice(2, 'sofa'), choice(3, 'table')]
    named = baseline_answers(asked)
    assert [a.value for a in named['baseline_first_option']] == ['A'] * 4
    assert [a.value for a in most_frequent(asked)] == ['B'] * 4
    for question, answer in zip(asked, question_only(asked), strict=True):
        assert answer.value in question.options
    plain = Question('p', 's', 'r', 'c', 'Which?', AnswerType.TEXT, 'sofa')
    assert 'baseline_first_option' not in baseline_answers([plain])
