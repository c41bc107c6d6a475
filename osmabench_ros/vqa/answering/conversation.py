"""Conversations of a language model with a map: the tools that look objects up in it."""

import json
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from osmabench_ros.base.strict import first_fault
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.language.model import Tool, ToolCall, ToolResult
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode
from osmabench_ros.vqa.answering.answerer import AnsweringMaterial
from osmabench_ros.vqa.answering.execution import GraphReader, SilentError
from osmabench_ros.vqa.answering.language_model import (
    Context,
    LanguageModelAnswerer,
    Shown,
    arguments_of,
    described,
)
from osmabench_ros.vqa.answering.pictures import camera_at, encoded, points_of, view_of_points
from osmabench_ros.vqa.graph_index import Embedder, centre_distance_m
from osmabench_ros.vqa.schemas import GivenAnswer

MOST_RESULT_CHARACTERS = 6000
MOST_PICTURE_PX = 768
_MOST_ROWS = 60


class _Arguments(BaseModel):
    model_config = ConfigDict(extra='forbid', allow_inf_nan=False)


class ListObjects(_Arguments):
    """List objects: id, label, room, centre and size in metres. All filters must hold."""

    label: str = Field('', description='Kind of object; synonyms count. Empty for all.')
    containing: str = Field('', description='Text in label, attributes or captions, e.g. "red".')
    room: int = Field(0, ge=0, description='Id of a room; 0 for all.')
    first: int = Field(0, ge=0, description='Rows to skip of a long list.')


class DescribeObject(_Arguments):
    """Say all that the map knows of one object: attributes, captions, box, relations."""

    id: int = Field(ge=1)


class ListRooms(_Arguments):
    """List rooms: id, label, centre and size in metres, number of objects."""


class Distance(_Arguments):
    """Give the straight distance of two objects in metres, of their centres and of their boxes."""

    first: int = Field(ge=1)
    second: int = Field(ge=1)


class NavigableDistance(Distance):
    """Give how far a small robot drives from one object to another, over free floor, in metres."""


class Look(_Arguments):
    """Show a picture of the recorded points from a place, towards another; metres, z up."""

    eye: list[float] = Field(min_length=3, max_length=3)
    target: list[float] = Field(min_length=3, max_length=3)
    width_px: int = Field(448, ge=64, le=MOST_PICTURE_PX)


class GiveAnswer(_Arguments):
    """Answer the question; an empty answer if the map does not say."""

    answer: str = Field(max_length=2000)
    nodes: list[int] = Field(default_factory=list, description='Objects it rests on.')


class MapTools:
    """The tools on one map."""

    def __init__(self, semantic_map: SemanticMap, embedder: Embedder | None = None) -> None:
        self._map = semantic_map
        self._graph = semantic_map.graph
        self._reader = GraphReader.of_map(semantic_map, embedder)
        self._index = self._reader.index
        self.declared = tuple(_declare_tool(name, tool) for name, (tool, _) in _TOOLS.items())

    def call(self, call: ToolCall) -> ToolResult | GivenAnswer:
        """Return the result of a call, or its answer; of one that cannot be served, the fault."""
        if call.name not in _TOOLS:
            known = ', '.join(_TOOLS)
            return ToolResult(f'error: there is no tool "{call.name[:80]}"; there are {known}')
        arguments, serve = _TOOLS[call.name]
        try:
            result = serve(self, arguments.model_validate(arguments_of(call)))
        except ValidationError as error:
            return ToolResult(f'error: wrong arguments: {first_fault(error)}')
        except (SilentError, ValueError) as fault:
            return ToolResult(f'error: {fault}')
        if isinstance(result, GivenAnswer):
            return result
        return ToolResult(result.text[:MOST_RESULT_CHARACTERS], result.image)

    def _node(self, node_id: int) -> SceneNode:
        node = self._index.by_id.get(node_id)
        if node is None:
            raise SilentError(f'the map has no object {node_id}; list_objects gives the ids')
        return node

    def _pair(self, wanted: Distance) -> tuple[SceneNode, SceneNode]:
        """Return two objects that have boxes."""
        first, second = (self._node(node_id) for node_id in (wanted.first, wanted.second))
        for node in (first, second):
            if node.box is None:
                raise SilentError(f'object {node.id} has no box in the map')
        return first, second

    def list_objects(self, wanted: ListObjects) -> ToolResult:
        """Return the objects that pass the filters, a JSON line each."""
        things = self._index.things
        if wanted.label:
            labels = self._reader.matcher.matching(wanted.label)
            things = tuple(n for n in things if normalised_name(n.label) in labels)
        if wanted.room:
            things = tuple(n for n in things if n.parent == wanted.room)
        word = wanted.containing.lower()
        things = tuple(n for n in things if word in _text_of(n))
        kept = ('id', 'label', 'room', 'center', 'size')
        known = [described(node, self._graph) for node in things[wanted.first :]]
        brief = [{key: data[key] for key in kept if key in data} for data in known]
        lines = [json.dumps(data, ensure_ascii=False) for data in brief]
        head = f'{len(things)} objects'
        left = len(lines) - _MOST_ROWS
        tail = [f'{left} more: set first to {wanted.first + _MOST_ROWS}'] if left > 0 else []
        return ToolResult('\n'.join([head, *lines[:_MOST_ROWS], *tail]))

    def describe_object(self, wanted: DescribeObject) -> ToolResult:
        """Return an object with its relations."""
        node = self._node(wanted.id)
        relations = [
            {'source': edge.source, 'relation': edge.type or edge.text, 'target': edge.target}
            | {'other': self._graph.by_id[other].label}
            for edge in self._graph.edges
            if node.id in (edge.source, edge.target)
            for other in {edge.source, edge.target} - {node.id}
        ]
        data = {**described(node, self._graph), 'relations': relations[:_MOST_ROWS]}
        return ToolResult(json.dumps(data, ensure_ascii=False))

    def list_rooms(self, wanted: ListRooms) -> ToolResult:
        """Return the rooms, a JSON line each."""
        del wanted
        rooms = list(self._graph.of_kind(NodeKind.ROOM))
        if not rooms:
            return ToolResult('the map has no rooms')
        objects = [node.parent for node in self._index.things]
        lines = [
            json.dumps({**described(room, self._graph), 'objects': objects.count(room.id)})
            for room in rooms
        ]
        return ToolResult('\n'.join(lines[:_MOST_ROWS]))

    def distance(self, wanted: Distance) -> ToolResult:
        """Return the distances of centres and of boxes."""
        first, second = self._pair(wanted)
        between_m = first.known_box.measure_gap(second.known_box)
        apart_m = centre_distance_m(first, second)
        data = {'centers_m': round(apart_m, 3), 'boxes_m': round(between_m, 3)}
        return ToolResult(json.dumps(data))

    def navigable_distance(self, wanted: NavigableDistance) -> ToolResult:
        """Return the length of the shortest way between the free places next to the centres."""
        length_m = self._reader.walk_m(*self._pair(wanted))
        return ToolResult(json.dumps({'metres': round(length_m, 2)}))

    def look(self, wanted: Look) -> ToolResult:
        """Return a picture of the points."""
        found = points_of(self._map)
        if found is None:
            raise SilentError('the map has no points to show')
        pose = camera_at(wanted.eye, wanted.target)
        width = wanted.width_px
        camera = Intrinsics.from_hfov(width, width * 3 // 4, math.radians(80))
        picture = view_of_points(*found, pose, camera)
        empty = bool((picture == 255).all())
        remark = '; nothing is in view' if empty else ''
        size = f'{camera.width} x {camera.height} pixels'
        return ToolResult(f'the picture follows, {size}{remark}', encoded(picture))

    def answer(self, wanted: GiveAnswer) -> GivenAnswer:
        """Return the answer."""
        return GivenAnswer(id='', answer=wanted.answer, nodes=wanted.nodes)


_Serve = Callable[[MapTools, Any], ToolResult | GivenAnswer]
_TOOLS: Mapping[str, tuple[type[_Arguments], _Serve]] = {
    'list_objects': (ListObjects, MapTools.list_objects),
    'describe_object': (DescribeObject, MapTools.describe_object),
    'list_rooms': (ListRooms, MapTools.list_rooms),
    'distance': (Distance, MapTools.distance),
    'navigable_distance': (NavigableDistance, MapTools.navigable_distance),
    'look': (Look, MapTools.look),
    'answer': (GiveAnswer, MapTools.answer),
}


def _declare_tool(name: str, arguments: type[_Arguments]) -> Tool:
    full = arguments.model_json_schema()
    kept = ('type', 'items', 'description', 'minimum', 'maximum')
    properties = {
        key: {word: value[word] for word in kept if word in value}
        for key, value in full.get('properties', {}).items()
    }
    parameters = {'type': 'object', 'properties': properties, 'required': full.get('required', [])}
    return Tool(name, ' '.join(full['description'].split()), parameters)


def _text_of(node: SceneNode) -> str:
    values = (str(value) for value in node.attributes.values())
    return ' '.join((normalised_name(node.label), *values, *node.captions)).lower()


class MapToolsContext(Context):
    """Offers tools on the map in a conversation of at most `rounds` replies about a question."""

    name = 'tools'
    prompt = 'answer_with_tools'
    rounds: int = Field(12, ge=1, le=24)

    def shown(self, semantic_map: SemanticMap, material: AnsweringMaterial) -> Shown:
        """Return the tools."""
        tools, known = MapTools(semantic_map, material.embedder), semantic_map.graph.by_id
        return Shown(nodes=frozenset(known), tools=tools, rounds=self.rounds)


ToolAnswerer = partial(LanguageModelAnswerer, MapToolsContext)
