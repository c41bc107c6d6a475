"""A language model that looks things up in a map: both APIs, replay, and whatever goes wrong."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from support.loopback_models import Misstep, cached_client
from support.world.graphs import as_map, living_room, thing, vocabulary

from osmabench_ros.errors import ConfigError, IncompleteError
from osmabench_ros.language.client import Account, ModelClient, ResponseCache
from osmabench_ros.language.model import ToolCall
from osmabench_ros.language.settings import make_language_model
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.vqa.answering.answerer import AnsweringMaterial, make_answerer
from osmabench_ros.vqa.answering.conversation import MapTools
from osmabench_ros.vqa.question_files import read_records, write_records
from osmabench_ros.vqa.questions import Answer, AnswerType, Inquiry

ASKED = Inquiry('q', 'Which chairs are there?', AnswerType.SET)


def room_points(gap_m=1.0):
    """A floor of 6 x 4 m, 2 cm apart, parted at x = 3 by a wall that ends `gap_m` before y = 4."""
    x, y = np.meshgrid(np.arange(0, 6, 0.02), np.arange(0, 4, 0.02), indexing='ij')
    floor = np.stack([x, y, 0 * x], -1).reshape(-1, 3)
    y, z = np.meshgrid(np.arange(0, 4 - gap_m, 0.02), np.arange(0, 2.0, 0.02), indexing='ij')
    wall = np.stack([0 * y + 3, y, z], -1).reshape(-1, 3)
    points = np.concatenate([floor, wall]).astype(np.float32)
    colors = np.zeros(points.shape, np.uint8)
    colors[: len(floor)] = (0, 0, 255)
    colors[len(floor) :] = (255, 0, 0)
    return DenseMap(points, colors)


@pytest.fixture
def mapped():
    graph = living_room()
    room = SceneNode(90, NodeKind.ROOM, (ScoredLabel('living room'),))
    nodes = tuple(replace(n, parent=90) if n.id == 3 else n for n in graph.nodes)
    graph = replace(graph, nodes=(*nodes, room))
    return replace(as_map(graph, vocabulary(graph)), dense=room_points())


def answerer(client, **options):
    return make_answerer('tools', AnsweringMaterial(client), options)


def ask(client, mapped, **options):
    (found,) = answerer(client, **options).answer(mapped, [ASKED])
    return found


def steps(*replies):
    """Reply to the n-th request of a conversation with the n-th reply."""
    return lambda request: replies[min(len(request.results), len(replies) - 1)]


def call(name, **arguments):
    return (name, json.dumps(arguments))


LOOKED_UP = steps(
    [call('list_objects', label='chair')],
    [call('look', eye=[1, 1, 1.5], target=[3, 1, 1], width_px=64)],
    [call('answer', answer='3, 5', nodes=[3, 5, 12345])],
)


def test_what_was_looked_up_reaches_the_model_and_the_transcript(client, server, mapped):
    server.act = LOOKED_UP
    answer = ask(client, mapped)
    assert (answer.value, answer.nodes, answer.failure) == ('3, 5', (3, 5), '')
    assert [used.tool for used in answer.transcript] == ['list_objects', 'look', 'answer']
    first, second, third = server.received
    assert not first.results
    assert '"id": 5' in second.results[0]
    assert answer.transcript[0].result == second.results[0]
    assert '64 x 48 pixels' in third.results[1]
    sent = json.dumps(third.body)
    assert 'image/png' in sent
    assert 'iVBORw0KGgo' in sent, 'the picture goes with it'
    assert ('c2lnbmVk' in sent) is ('contents' in third.body), 'Gemini wants its signatures back'


def test_all_tools_are_declared_in_both_apis(client, server, mapped):
    server.act = steps('sofa')
    ask(client, mapped)
    (received,) = server.received
    sent = json.dumps(received.body)
    for tool in MapTools(mapped).declared:
        assert f'"{tool.name}"' in sent
    assert ask(client, mapped).value == 'sofa', 'a text is an answer too'


def test_a_second_run_is_replayed_from_kept_replies_offline(client, server, mapped, tmp_path):
    server.act = LOOKED_UP
    first = ask(client, mapped)
    count = len(server.received)
    assert ask(client, mapped) == first
    assert len(server.received) == count
    offline = make_language_model(f'offline:{client.name}', {'base_url': server.url})
    kept = ModelClient(offline, cache=ResponseCache(tmp_path / 'cache'))
    assert ask(kept, mapped) == first


@pytest.mark.parametrize(
    ('made', 'fault'),
    [
        (('teleport', '{}'), 'no tool "teleport"'),
        (('x' * 100_000, '{}'), 'no tool "xxx'),
        (('', '{}'), 'no tool ""'),
        (('distance', '{"first": 3}'), 'second'),
        (('distance', '{"first": 3, "second": "sofa"}'), 'second'),
        (('distance', '{"first": 3, "second": 999}'), 'no object 999'),
        (('distance', '{"first": 3'), 'not a JSON object'),
        (('distance', '[3, 5]'), 'not a JSON object'),
        (('list_objects', '{"lable": "chair"}'), 'lable'),
        (('look', '{"eye": [0, 0, 1], "target": [1, 1, 1], "width_px": 100000}'), 'width_px'),
        (('look', '{"eye": [0, 0, 1], "target": [0, 0, 1]}'), 'is at the point'),
        (('look', '{"eye": [0, 0], "target": [0, 0, 1]}'), 'eye'),
        (('distance', '"' + 'x' * 100_000 + '"'), 'more than 4000 characters'),
        (('answer', '{"reply": "sofa"}'), 'answer'),
    ],
)
def test_a_call_that_cannot_be_served_is_said_and_may_be_mended(
    server, tmp_path, mapped, made, fault
):
    server.act = steps([made], [call('answer', answer='sofa')])
    answer = ask(cached_client(server, tmp_path), mapped)
    assert answer.value == 'sofa'
    said = server.received[1].results[0]
    assert said.startswith('error: ')
    assert fault in said
    assert len(json.dumps(server.received[1].body)) < 20_000
    back = server.received[1].body['messages'][2]['tool_calls'][0]['function']['arguments']
    assert isinstance(json.loads(back), dict), 'servers choke on their own malformed calls'


def test_an_endless_loop_ends_incomplete_with_its_reason(client, server, mapped):
    server.act = lambda request: [call('list_rooms')]
    asks = answerer(client, rounds=3)
    (answer,) = asks.answer(mapped, [ASKED])
    assert answer.value is None
    assert answer.note == 'no answer within 3 rounds of tools'
    assert not answer.failure, 'it is the model and not its server'
    assert asks.summary['incomplete'] == {answer.note: 1}
    assert len(server.received) == 3
    assert len(answer.transcript) == 3
    last = json.dumps(server.received[-1].body)
    assert 'navigable_distance' not in last, 'in the end only an answer is offered'


def test_many_calls_at_once_are_cut(server, tmp_path, mapped):
    server.act = steps([call('list_rooms')] * 500, [], *[[]] * 6, [call('answer', answer='x')])
    answer = ask(cached_client(server, tmp_path), mapped)
    assert len(server.received[1].results) == 8
    assert answer.value == 'x'
    assert len(answer.transcript) == 9


def test_a_transcript_of_any_length_can_be_read_again(server, tmp_path, mapped):
    named = tuple(
        replace(node, captions=('\x07"\n' * 400,)) if node.id == 3 else node
        for node in mapped.graph.nodes
    )
    here = replace(mapped, graph=replace(mapped.graph, nodes=named))
    server.act = lambda request: [call('describe_object', id=3)] * 8
    (answer,) = answerer(cached_client(server, tmp_path), rounds=24).answer(here, [ASKED])
    write_records(tmp_path / 'answers.jsonl', [answer])
    assert read_records(tmp_path / 'answers.jsonl', Answer) == [answer]


@pytest.mark.parametrize('said', ['', '  '])
def test_a_reply_without_anything_is_incomplete(server, tmp_path, mapped, said):
    server.act = steps(said)
    answer = ask(cached_client(server, tmp_path), mapped)
    assert (answer.value, answer.failure) == (None, '')
    assert 'neither an answer' in answer.note


def test_an_empty_answer_says_that_the_map_does_not_tell(server, tmp_path, mapped):
    server.act = steps([call('answer', answer='')])
    asks = answerer(cached_client(server, tmp_path))
    (answer,) = asks.answer(mapped, [ASKED])
    assert answer.value is None
    assert 'no answer' in answer.note
    assert asks.summary['incomplete'] == {}


def test_a_server_that_fails_in_mid_conversation_is_missing_and_the_next_run_goes_on(
    server, tmp_path, mapped
):
    asked = [ASKED, replace(ASKED, id='r', text='Which lamps are there?')]

    server.act = LOOKED_UP
    tight = cached_client(server, tmp_path, ledger=Account(max_tokens=39_000), concurrency=1)
    server.tokens = (15_000, 100)
    with pytest.raises(IncompleteError, match=r'2 of 2 questions unanswered: the budget') as error:
        answerer(tight).answer(mapped, asked)
    assert [bool(a.failure) for a in error.value.kept] == [True, True]
    assert error.value.kept[0].transcript, 'what was looked up before is kept'
    assert len(server.received) == 2
    answers = answerer(cached_client(server, tmp_path)).answer(mapped, asked)
    assert [a.value for a in answers] == ['3, 5', '3, 5']
    assert len(server.received) == 6, 'four more: what was kept is not asked again'


def test_a_refusal_is_wrong_and_not_missing(server, tmp_path, mapped):
    server.act, server.always = steps('sofa'), Misstep('refusal')
    answer = ask(cached_client(server, tmp_path), mapped)
    assert (answer.value, answer.failure) == (None, '')
    assert 'declined' in answer.note


def test_a_wrong_option_and_a_missing_model_are_named():
    with pytest.raises(ConfigError, match=r'tools:openai:qwen3'):
        make_answerer('tools', AnsweringMaterial(), {})


def served(mapped, name, **arguments):
    made = ToolCall(name=name, arguments=json.dumps(arguments))
    return MapTools(mapped).call(made)


def test_objects_are_filtered_by_label_room_and_text(mapped):
    everything = served(mapped, 'list_objects').text.splitlines()
    assert everything[0] == f'{len(everything) - 1} objects'
    (line,) = served(mapped, 'list_objects', room=90).text.splitlines()[1:]
    assert json.loads(line)['id'] == 3
    red = served(mapped, 'list_objects', containing='red').text.splitlines()[1:]
    labels = {node.id: node.attributes.get('color') for node in mapped.graph.nodes}
    assert red
    assert {labels[json.loads(line)['id']] for line in red} == {'red'}
    assert served(mapped, 'list_objects', label='hippopotamus').text == '0 objects'
    assert len(served(mapped, 'list_objects', first=5).text.splitlines()) == len(everything) - 5


def test_an_object_is_described_with_its_relations_and_rooms_with_their_objects(mapped):
    data = json.loads(served(mapped, 'describe_object', id=9).text)
    assert data['relations'][0]['relation'] == 'on'
    assert data['attributes']
    room = json.loads(served(mapped, 'list_rooms').text)
    assert (room['label'], room['objects']) == ('living room', 1)
    assert served(as_map(living_room()), 'list_rooms').text == 'the map has no rooms'
    kitchen = SceneNode(1, NodeKind.ROOM, (ScoredLabel('Küche'),))
    assert 'küche' in served(as_map(SceneGraph((kitchen,))), 'list_rooms').text


def boxed(node_id, x, y):
    return thing(node_id, f'thing{node_id}', (x - 0.1, y - 0.1, 0.0), (0.2, 0.2, 0.4))


def with_ends(mapped):
    """Return a map of two objects, one on each side of the wall."""
    nodes = (boxed(1, 1.0, 0.5), boxed(2, 5.0, 0.5))
    return replace(mapped, graph=replace(mapped.graph, nodes=nodes, edges=()))


def test_straight_distances_are_those_of_centres_and_of_boxes(mapped):
    found = json.loads(served(with_ends(mapped), 'distance', first=1, second=2).text)
    assert found == {'centers_m': 4.0, 'boxes_m': 3.8}


def test_a_robot_drives_around_the_wall_as_far_as_geometry_says(mapped):
    """The wall ends at (3, 3); the robot's centre keeps its radius and a cell away from that.

    The shortest way from (1, 0.5) to (5, 0.5) around a disc of radius r at the corner is two
    tangents and the arc between them.
    """
    here = with_ends(mapped)
    found = json.loads(served(here, 'navigable_distance', first=1, second=2).text)['metres']
    radius, reach = 0.25, math.hypot(2.0, 2.5)
    arc = 2 * math.pi - 2 * math.atan2(2.0, 2.5) - 2 * math.acos(radius / reach)
    expected = 2 * math.sqrt(reach**2 - radius**2) + radius * arc
    assert found == pytest.approx(expected, abs=0.15)


def test_no_way_leads_through_a_wall_without_a_door_or_on_no_points(mapped):
    here = replace(with_ends(mapped), dense=room_points(gap_m=0.0))
    # Both ends are moved to the same side of the wall.
    assert json.loads(served(here, 'navigable_distance', first=1, second=2).text)['metres'] < 2.3
    bare = replace(here, dense=None)
    assert 'no points' in served(bare, 'navigable_distance', first=1, second=2).text
    assert 'no points' in served(bare, 'look', eye=[0, 0, 1], target=[1, 1, 1]).text
