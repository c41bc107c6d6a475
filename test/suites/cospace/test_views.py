"""Views around places of a furnished room: what is asked, and what maps answer."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.figures import figures
from support.loopback_models import LoopbackModels
from support.world.scenes import camera_at, cast_rays, furnished_room

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.semantics.scene_graph import ScoredLabel
from osmabench_ros.sequences.ground_truth import build_ground_truth
from osmabench_ros.simulation.simulator import Observation
from osmabench_ros.suites.cospace.answering import (
    COMPASS,
    HFOV_RAD,
    TASKS,
    Asked,
    Order,
    Place,
    RuleOfViews,
    Task,
    ViewReader,
    is_seen,
    list_views,
    put_in_words,
    read,
)
from osmabench_ros.suites.cospace.generation import panorama_questions, whole_surface
from osmabench_ros.suites.suite import SuiteContext, make_suite
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.questions import AnswerType, Inquiry

CAMERA = Intrinsics.from_hfov(120, 90, HFOV_RAD)


@cache
def truth_of_path():
    """Return the ground truth of a path that sees the floor it goes on."""
    wide = Intrinsics.from_hfov(320, 240, 1.57)
    places = [(x, y) for x in (-2.6, -0.8, 1.4, 3.0) for y in (-1.6, 0.0, 1.7)]
    poses = [camera_at(x, y, 1.2, yaw * math.pi / 2) for x, y in places for yaw in range(4)]
    return build_ground_truth(furnished_room(), poses, wide)


@pytest.fixture(scope='module')
def generated():
    def render(pose):
        depth, instances = cast_rays(furnished_room(), CAMERA, pose)
        color = np.zeros((*instances.shape, 3), np.uint8)
        return Observation(color, depth, np.zeros_like(instances, np.uint16), instances)

    return panorama_questions(truth_of_path(), render, scene_key='room', seed=1, places=4)


def perfect_map():
    truth = truth_of_path()
    made = ground_truth_map(truth.graph, truth.seen_instances, truth.label_set)
    return replace(made, dense=DenseMap(whole_surface(truth)))


def scored(semantic_map, questions):
    context = SuiteContext('room', semantic_map, truth_of_path(), questions=questions)
    return figures(make_suite('cospace'), context, applicable=True)


def test_all_tasks_are_asked_in_three_orders_with_balanced_letters(generated):
    questions, images = generated
    assert {item.category for item in questions} == TASKS.keys()
    assert len({item.id for item in questions}) == len(questions)
    assert {name for item in questions for name in item.images} == images.keys()
    orders = Counter(item.provenance['item'] for item in questions)
    rotations = {Task.ANGLE.name, Task.DIFFERENCE.name}
    for item in questions:
        assert orders[item.provenance['item']] == (1 if item.category in rotations else 3)
        assert len(set(item.images)) == (5 if item.category == Task.DIFFERENCE.name else 4)
    for task in (Task.DIRECTION, Task.PLACE, Task.ANGLE):
        letters = Counter(
            item.options.index(item.answer)
            for item in questions
            if item.category == task.name and item.provenance['order'] == Order.CLOCKWISE.value
        )
        assert max(letters.values()) - min(letters.values()) <= 1
        assert len(letters) == (2 if task is Task.ANGLE else 4)


def test_exactly_one_option_holds_by_the_boxes_of_the_scene(generated):
    """A second computation: angles by complex numbers, from the objects and not from the graph."""
    scene = furnished_room()
    center = {scene.class_name(item): item.box.center for item in scene.objects}
    proved = 0
    for item in generated[0]:
        asked = read(item.text)
        if asked.task not in (Task.DIRECTION, Task.OBJECT):
            continue
        # Nothing is within 8 degrees of a border between sectors.
        for turn in (-7.9, 0.0, 7.9):

            def sector(name, turned=asked.place.ahead_deg + turn, asked=asked):
                x, y = center[name.split()[-1]][:2] - asked.place.eye_m[:2]
                return COMPASS[
                    round((math.radians(turned) - math.atan2(y, x)) / (math.pi / 4)) % 8
                ]

            if asked.task is Task.DIRECTION:
                assert sector(asked.about) == item.answer
            else:
                there = [name for name in item.options if sector(name) == asked.about]
                assert there == [item.answer]
        proved += 1
    assert proved >= 24


def test_no_way_goes_on_the_underside_of_the_floor():
    assert truth_of_path().unseen.points[:, 2].min() < -0.05
    assert whole_surface(truth_of_path())[:, 2].min() > -0.05


NAMES = st.sampled_from(('red chair', 'shelf', 'dark brown tv stand', 'stairs', 'glass'))
SHOWN = st.lists(st.lists(NAMES, max_size=2).map(tuple), min_size=4, max_size=5).map(tuple)


@pytest.mark.parametrize('task', TASKS.values(), ids=TASKS)
@given(data=st.data())
def test_every_question_reads_back(task, data):
    metres = st.integers(-999, 999).map(lambda number: number / 100)
    place = data.draw(st.builds(Place, st.tuples(metres, metres, metres), st.integers(0, 359)))
    rotation = task in (Task.ANGLE, Task.DIFFERENCE)
    about = data.draw(st.sampled_from(COMPASS) if task is Task.OBJECT else NAMES)
    asked = Asked(task, place, '' if rotation else about, data.draw(SHOWN) if rotation else ())
    for order in Order:
        views = f' {list_views(asked.shown)}' if rotation else ''
        assert read(put_in_words(asked, order) + views) == asked


def test_a_question_of_others_is_not_read():
    assert read('Where is the bed?') is None
    (answer,) = RuleOfViews().answer(perfect_map(), [Inquiry('q', 'Where?', AnswerType.TEXT)])
    assert answer.value is None


def test_a_perfect_map_is_right_and_wrong_names_and_places_cost(generated):
    questions, _ = generated
    found = scored(perfect_map(), questions)
    for mode in ('compat', 'strict'):
        assert found[mode, 'accuracy', ''].value == 1.0
        assert found[mode, 'accuracy', 'PLA-Dec'].value == 1.0
    assert found['strict', 'accuracy_all_orders', ''].value == 1.0
    assert found['strict', 'consistency', ''].value == 1.0
    for ceiling in ('ground_truth', 'visible', 'camera'):
        assert found['strict', f'ceiling_{ceiling}', ''].value == 1.0
    assert found['strict', 'baseline_first_option', ''].value < 0.4
    assert found['strict', 'baseline_random_labels', ''].value < 0.8
    mixed = perfect_map()
    swap = {'bed': 'sofa', 'sofa': 'bed', 'desk': 'shelf', 'shelf': 'desk'}
    nodes = tuple(
        replace(n, labels=(ScoredLabel(swap.get(n.label, n.label), 1.0),)) if n.label else n
        for n in mixed.graph.nodes
    )
    worse = scored(replace(mixed, graph=replace(mixed.graph, nodes=nodes)), questions)
    assert worse['strict', 'accuracy', ''].value < 0.9
    # Without points a map cannot tell what is in the way.
    bare = scored(replace(perfect_map(), dense=None), questions)
    assert ('strict', 'accuracy', 'CNT') not in bare
    assert bare['strict', 'accuracy', 'DIR-Rec'].value == 1.0
    assert scored(perfect_map(), []) == {}


def test_a_model_sees_the_images_and_no_map(generated, tmp_path, monkeypatch):
    """A server on loopback that always says A; of a map the images would be told in words."""
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    questions, images = generated
    asked = [item for item in questions if item.category == Task.ANGLE.name][:2]
    (tmp_path / 'cospace').mkdir()
    for name in asked[0].images + asked[1].images:
        Image.fromarray(images[name]).save(tmp_path / name)

    def reply(prompt):
        ids = re.findall(r'q-[0-9a-f]{16}', prompt)
        return json.dumps({'answers': [{'id': key, 'answer': 'A'} for key in ids]})

    with LoopbackModels(reply=reply) as server:
        options = {'answerer': 'images:openai:m', 'base_url': server.url,
                   'cache': str(tmp_path / 'cache')}  # fmt: skip
        context = SuiteContext('room', perfect_map(), truth_of_path(), questions=asked,
                               question_images=tmp_path)  # fmt: skip
        found = figures(make_suite('cospace', options), context)
    right = sum(item.options.index(item.answer) == 0 for item in asked) / len(asked)
    for mode in ('compat', 'strict'):
        assert found[mode, 'accuracy', ''].value == right
    assert len(server.received) == len(asked)
    for request in server.received:
        parts = request.body['messages'][-1]['content']
        assert sum(part['type'] == 'image_url' for part in parts) == 4
        assert 'Image 1 shows' not in request.prompt


@pytest.mark.parametrize(('line', 'right'), [
    ([(0, 0), (3, 0)], 'go ahead'),
    ([(0, 0), (0, -3)], 'turn right and go ahead'),
    ([(0, 0), (0, 3)], 'turn left and go ahead'),
    ([(0, 0), (-3, 0.1)], 'turn back and go ahead'),
    ([(0, 0), (2, 0), (2, 2)], 'go ahead and turn left'),
    ([(0, 0), (2, 0), (2, -2)], 'go ahead and turn right'),
    ([(0, 0), (3, 2.9)], None),
    ([(0, 0), (0, -2), (2, -2)], None),
    ([(0, 0), (1, 0)], None),
])  # fmt: skip
def test_decisions_follow_the_way(line, right):
    ways = SimpleNamespace(line_m=lambda start, goal: np.array(line, float))
    reader = ViewReader(GraphReader(perfect_map().graph), None, ways)
    place = Place((0.0, 0.0, 1.2), 0.0)
    asked = Asked(Task.DECISION, place, 'bed', options=Task.DECISION.answers)
    assert reader.answer_clearly(asked) == right


def test_what_is_hidden_is_not_seen():
    place = Place((0.0, 0.0, 1.0), 0.0)
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 81), np.linspace(0, 2, 81)), -1).reshape(-1, 2)
    near, far = (np.column_stack([np.full(len(grid), x), grid]) for x in (2.0, 3.0))
    boxes = [AxisAlignedBox.around(points) for points in (near, far)]
    shown = place.nearest(np.concatenate([near, far]))
    assert [is_seen(box, shown) for box in boxes] == [True, False]
    assert is_seen(boxes[1], place.nearest(far))
