"""Conversations of a language model with a map: the tools that look objects up in it."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from osmabench_ros.base.strict import first_fault
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.language.embedding import Embedder
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
    to_json,
)
from osmabench_ros.vqa.answering.pictures import camera_at, encoded, points_of, view_of_points
from osmabench_ros.vqa.graph_index import centre_distance_m
from osmabench_ros.vqa.schemas import GivenAnswer

MOST_RESULT_CHARACTERS = 6000
MOST_PICTURE_PX = 768
_MOST_ROWS = 60
_Id = Annotated[int, Field(ge=1)]
_Point = Annotated[list[float], Field(min_length=3, max_length=3)]


class MapTools:
    """The tools on one map."""

    def __init__(self, semantic_map: SemanticMap, embedder: Embedder | None = None) -> None:
        self._map = semantic_map
        self._graph = semantic_map.graph
        self._reader = GraphReader.of_map(semantic_map, embedder)
        self._index = self._reader.index
        tools: tuple[Any, ...] = (
            self.list_objects, self.describe_object, self.list_rooms, self.distance,
            self.navigable_distance, self.look, self.answer,
        )  # fmt: skip
        exact = ConfigDict(allow_inf_nan=False)
        self._served = {tool.__name__: TypeAdapter(tool, config=exact) for tool in tools}
        self.declared = tuple(
            _declare_tool(name, getattr(self, name).__doc__, arguments.json_schema())
            for name, arguments in self._served.items()
        )

    def call(self, call: ToolCall) -> ToolResult | GivenAnswer:
        """Return the result of a call, or its answer; of one that cannot be served, the fault."""
        if call.name not in self._served:
            known = ', '.join(self._served)
            return ToolResult(f'error: there is no tool "{call.name[:80]}"; there are {known}')
        try:
            result: Any = self._served[call.name].validate_python(arguments_of(call))
        except ValidationError as error:
            return ToolResult(f'error: wrong arguments: {first_fault(error)}')
        except (SilentError, ValueError) as fault:
            return ToolResult(f'error: {fault}')
        is_text = isinstance(result, str)
        return ToolResult(result[:MOST_RESULT_CHARACTERS]) if is_text else result

    def _node(self, node_id: int) -> SceneNode:
        node = self._index.by_id.get(node_id)
        if node is None:
            raise SilentError(f'the map has no object {node_id}; list_objects gives the ids')
        return node

    def _pair(self, first: int, second: int) -> tuple[SceneNode, SceneNode]:
        """Return two objects that have boxes."""
        nodes = self._node(first), self._node(second)
        for node in nodes:
            if node.box is None:
                raise SilentError(f'object {node.id} has no box in the map')
        return nodes

    # A model reads the name, the docstring and the arguments of a tool.

    def list_objects(
        self,
        label: Annotated[
            str, Field(description='Kind of object; synonyms count. Empty for all.')
        ] = '',
        containing: Annotated[
            str, Field(description='Text in label, attributes or captions, e.g. "red".')
        ] = '',
        room: Annotated[int, Field(ge=0, description='Id of a room; 0 for all.')] = 0,
        first: Annotated[int, Field(ge=0, description='Rows to skip of a long list.')] = 0,
    ) -> str:
        """List objects: id, label, room, centre and size in metres. All filters must hold."""
        things = self._index.things
        if label:
            labels = self._reader.matcher.matching(label)
            things = tuple(n for n in things if normalised_name(n.label) in labels)
        if room:
            things = tuple(n for n in things if n.parent == room)
        things = tuple(n for n in things if containing.lower() in _text_of(n))
        kept = ('id', 'label', 'room', 'center', 'size')
        known = [described(node, self._graph) for node in things[first:]]
        brief = [{key: data[key] for key in kept if key in data} for data in known]
        left = len(brief) - _MOST_ROWS
        tail = [f'{left} more: set first to {first + _MOST_ROWS}'] if left > 0 else []
        return '\n'.join([f'{len(things)} objects', *map(to_json, brief[:_MOST_ROWS]), *tail])

    def describe_object(self, id: _Id) -> str:  # noqa: A002
        """Say all that the map knows of one object: attributes, captions, box, relations."""
        node = self._node(id)
        relations = [
            {'source': edge.source, 'relation': edge.type or edge.text, 'target': edge.target}
            | {'other': self._graph.by_id[other].label}
            for edge in self._graph.edges
            if id in (edge.source, edge.target)
            for other in {edge.source, edge.target} - {id}
        ]
        return to_json({**described(node, self._graph), 'relations': relations[:_MOST_ROWS]})

    def list_rooms(self) -> str:
        """List rooms: id, label, centre and size in metres, number of objects."""
        objects = [node.parent for node in self._index.things]
        lines = [
            to_json({**described(room, self._graph), 'objects': objects.count(room.id)})
            for room in self._graph.of_kind(NodeKind.ROOM)
        ]
        return '\n'.join(lines[:_MOST_ROWS]) or 'the map has no rooms'

    def distance(self, first: _Id, second: _Id) -> str:
        """Give the straight distance of two objects in metres, of their centres and of their boxes."""  # noqa: E501
        one, other = self._pair(first, second)
        between_m = one.known_box.measure_gap(other.known_box)
        apart_m = centre_distance_m(one, other)
        return to_json({'centers_m': round(apart_m, 3), 'boxes_m': round(between_m, 3)})

    def navigable_distance(self, first: _Id, second: _Id) -> str:
        """Give how far a small robot drives from one object to another, over free floor, in metres."""  # noqa: E501
        return to_json({'metres': round(self._reader.walk_m(*self._pair(first, second)), 2)})

    def look(
        self,
        eye: _Point,
        target: _Point,
        width_px: Annotated[int, Field(ge=64, le=MOST_PICTURE_PX)] = 448,
    ) -> ToolResult:
        """Show a picture of the recorded points from a place, towards another; metres, z up."""
        found = points_of(self._map)
        if found is None:
            raise SilentError('the map has no points to show')
        camera = Intrinsics.from_hfov(width_px, width_px * 3 // 4, math.radians(80))
        picture = view_of_points(*found, camera_at(eye, target), camera)
        remark = '; nothing is in view' if (picture == 255).all() else ''
        size = f'{camera.width} x {camera.height} pixels'
        return ToolResult(f'the picture follows, {size}{remark}', encoded(picture))

    def answer(
        self,
        answer: Annotated[str, Field(max_length=2000)],
        nodes: Annotated[tuple[int, ...], Field(description='Objects it rests on.')] = (),
    ) -> GivenAnswer:
        """Answer the question; an empty answer if the map does not say."""
        return GivenAnswer(id='', answer=answer, nodes=list(nodes))


def _declare_tool(name: str, description: str, schema: Mapping[str, Any]) -> Tool:
    kept = ('type', 'items', 'description', 'minimum', 'maximum')
    properties = {
        key: {word: value[word] for word in kept if word in value}
        for key, value in schema.get('properties', {}).items()
    }
    required = schema.get('required', [])
    parameters = {'type': 'object', 'properties': properties, 'required': required}
    return Tool(name, ' '.join(description.split()), parameters)


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
