"""Specifications of scenes as files, and the check that a scene holds one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from osmabench_ros.base.documents import read_yaml
from osmabench_ros.base.strict import PlainName, Strict, validated
from osmabench_ros.errors import SceneError, choose
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneGraph, SceneNode

MOST_OBJECTS = 60
# An object this close to a wall is against it, metres.
WALL_M = 0.15

# An object in the middle of a room is at most this fraction of its edges off its centre.
MIDDLE_SHARE = 0.25


class SpecifiedRelation(str, Enum):
    """Relations that a specification may state; all follow from the geometry of the scene."""

    ON = RelationType.ON.value
    IN = RelationType.IN.value
    UNDER = RelationType.UNDER.value
    NEXT_TO = RelationType.NEXT_TO.value
    NEAR = RelationType.NEAR.value
    AROUND = 'around'
    BETWEEN = 'between'
    AGAINST_WALL = 'against the wall'
    MIDDLE = 'in the middle of the room'

    @property
    def objects(self) -> int:
        """How many other objects it relates to."""
        alone = (SpecifiedRelation.AGAINST_WALL, SpecifiedRelation.MIDDLE)
        return 2 if self is SpecifiedRelation.BETWEEN else int(self not in alone)


class ObjectGroup(Strict):
    """So many objects of a class; `name` is what statements call them, by default the class."""

    label: str = Field(alias='class', min_length=1)
    count: int = Field(1, ge=1, le=MOST_OBJECTS)
    color: str = ''
    material: str = ''
    name: str = ''

    @property
    def called(self) -> str:
        """Name that statements use."""
        return self.name or self.label

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes that each of them has."""
        given = {'color': self.color, 'material': self.material}
        return {key: value for key, value in given.items() if value}


class Statement(Strict):
    """Every object of `subject` has a relation to one of `object`, or is between two."""

    subject: str
    relation: SpecifiedRelation
    object: tuple[str, ...] = ()

    @model_validator(mode='before')
    @classmethod
    def _take_one_name(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get('object'), str):
            return {**data, 'object': (data['object'],)}
        return data

    @model_validator(mode='after')
    def _check_count(self) -> Statement:
        if len(self.object) != self.relation.objects:
            raise ValueError(f'"{self.relation.value}" takes {self.relation.objects} "object"')
        return self

    @property
    def sentence(self) -> str:
        """The statement in words."""
        others = ' and '.join(f'the {name}' for name in self.object)
        return f'every {self.subject} is {self.relation.value} {others}'.rstrip()


class RoomSpecification(Strict):
    """A room by its kind, with all objects of the classes it names, and no more of these."""

    label: str = Field(alias='room', min_length=1)
    objects: tuple[ObjectGroup, ...] = Field(min_length=1)
    relations: tuple[Statement, ...] = ()

    @model_validator(mode='after')
    def _check_names(self) -> RoomSpecification:
        names = [group.called for group in self.objects]
        if len(set(names)) < len(names):
            raise ValueError('two groups of objects have one name; give "name" to one of them')
        for item in self.relations:
            for name in (item.subject, *item.object):
                choose(name, names, ValueError, f'no object is called "{name}"')
            if item.subject in item.object and self.group(item.subject).count < 2:
                raise ValueError(f'"{item.sentence}": an object is not related to itself')
        return self

    def group(self, name: str) -> ObjectGroup:
        """Return the group that statements call so."""
        return next(item for item in self.objects if item.called == name)


class SceneSpecification(Strict):
    """The content that a scene must have.

    Parameters
    ----------
    name : str
        Of the scenes that are made by it.
    prompt : str
        The text that it was made from; '' without one.
    rooms : tuple of RoomSpecification
        In the order in which the rooms lie, each kind once.
    """

    name: PlainName
    prompt: str = ''
    rooms: tuple[RoomSpecification, ...] = Field(min_length=1, max_length=6)

    @model_validator(mode='after')
    def _check_rooms(self) -> SceneSpecification:
        labels = [room.label for room in self.rooms]
        if len(set(labels)) < len(labels):
            raise ValueError('two rooms have one name; call them e.g. "bedroom" and "bedroom 2"')
        if sum(group.count for room in self.rooms for group in room.objects) > MOST_OBJECTS:
            raise ValueError(f'a scene has at most {MOST_OBJECTS} objects')
        return self


def read_specification(path: Path) -> SceneSpecification:
    """Read the YAML file of a specification; SceneError names file and key."""
    return validated(SceneSpecification, read_yaml(path, SceneError), str(path), SceneError)


class FactKind(str, Enum):
    """The kinds of facts of a specification."""

    COUNT = 'count'
    ATTRIBUTE = 'attribute'
    RELATION = 'relation'


@dataclass(frozen=True)
class Fact:
    """One statement of a specification, and whether a scene holds it."""

    kind: FactKind
    sentence: str
    holds: bool


def facts(specification: SceneSpecification, graph: SceneGraph) -> Iterator[Fact]:
    """Yield all that a specification says, held against the graph of a whole scene.

    Rooms are found by their kind; a graph without rooms is one room. Counts are exact, for each
    class of a room over all groups of it; attributes and relations hold if as many objects as the
    group has do have them.
    """
    for room in specification.rooms:
        view = _RoomView(graph, room.label)
        counts: dict[str, int] = {}
        for group in room.objects:
            label = normalised_name(group.label)
            counts[label] = counts.get(label, 0) + group.count
        for label, count in counts.items():
            sentence = f'the number of "{label}" in the {room.label} is {count}'
            yield Fact(FactKind.COUNT, sentence, len(view.select_named(label)) == count)
        for group in room.objects:
            if attributes := group.attributes:
                sentence = f'every {group.called} is {" and ".join(attributes.values())}'
                holds = len(view.members(group)) >= group.count
                yield Fact(FactKind.ATTRIBUTE, sentence, holds)
        for item in room.relations:
            yield Fact(FactKind.RELATION, item.sentence, view.holds(item, room))


class _RoomView:
    """The objects of one room of a graph."""

    def __init__(self, graph: SceneGraph, label: str) -> None:
        wanted = normalised_name(label)
        rooms = {node.id: node for node in graph.of_kind(NodeKind.ROOM)}
        own = {key for key, node in rooms.items() if normalised_name(node.label) == wanted}
        self._nodes = [
            node
            for node in graph.of_kind(NodeKind.OBJECT)
            if node.box is not None and (not rooms or node.parent in own)
        ]
        walls = (node for node in graph.of_kind(NodeKind.BACKGROUND) if node.label == 'wall')
        self._walls = [node.box for node in walls if node.box is not None]
        self._room = next((rooms[key].box for key in sorted(own)), None)
        self._edges = {(edge.source, edge.type, edge.target) for edge in graph.edges}

    def select_named(self, label: str) -> list[SceneNode]:
        """Return the objects of a class."""
        wanted = normalised_name(label)
        return [node for node in self._nodes if normalised_name(node.label) == wanted]

    def members(self, group: ObjectGroup) -> list[SceneNode]:
        """Return the objects of a class that have all attributes of a group."""
        wanted = group.attributes.items()
        return [
            node
            for node in self.select_named(group.label)
            if all(node.attributes.get(key) == value for key, value in wanted)
        ]

    @cached_property
    def _extent(self) -> AxisAlignedBox:
        return self._room or AxisAlignedBox.holding(node.known_box for node in self._nodes)

    def holds(self, item: Statement, room: RoomSpecification) -> bool:
        """Return whether as many objects as the subject has are in the relation."""
        wanted = room.group(item.subject)
        others = [self.members(room.group(name)) for name in item.object]
        found = [node for node in self.members(wanted) if self._is_related(node, item, others)]
        if item.relation is SpecifiedRelation.AROUND and wanted.count > 1:
            return len(found) >= wanted.count and _is_on_two_sides(found, others[0])
        return len(found) >= wanted.count

    def _is_related(
        self, node: SceneNode, item: Statement, others: Sequence[Sequence[SceneNode]]
    ) -> bool:
        box, relation = node.known_box, item.relation
        if relation is SpecifiedRelation.AGAINST_WALL:
            return any(box.measure_gap(wall) <= WALL_M for wall in self._walls)
        if relation is SpecifiedRelation.MIDDLE:
            off = np.abs(box.center - self._extent.center) / self._extent.size
            return bool((off[:2] <= MIDDLE_SHARE).all())
        if relation is SpecifiedRelation.BETWEEN:
            return any(
                first is not second and _is_between(box, first.known_box, second.known_box)
                for first in others[0]
                for second in others[1]
            )
        kinds = [relation.value]
        if relation is SpecifiedRelation.NEAR:
            kinds.append(RelationType.NEXT_TO.value)
        elif relation is SpecifiedRelation.AROUND:
            kinds = [RelationType.NEXT_TO.value]
        wanted = ((node.id, kind, other.id) for kind in kinds for other in others[0])
        return not self._edges.isdisjoint(wanted)


def _is_between(box: AxisAlignedBox, first: AxisAlignedBox, second: AxisAlignedBox) -> bool:
    """Return whether the middle of a box is near the line between the middles of two others."""
    start = first.center[:2]
    end = second.center[:2]
    along = end - start
    length_m = float(np.linalg.norm(along))
    if length_m == 0:
        return False
    offset: NDArray[np.float64] = box.center[:2] - start
    share = float(offset @ along) / length_m**2
    aside_m = abs(float(offset[0] * along[1] - offset[1] * along[0])) / length_m
    width_m = max(float(item.size[:2].max()) for item in (first, second)) / 2
    return 0.1 < share < 0.9 and aside_m <= width_m


def _is_on_two_sides(found: Sequence[SceneNode], others: Sequence[SceneNode]) -> bool:
    """Return whether objects are in two quadrants around one of some others."""
    for other in others:
        off = [node.known_box.center[:2] - other.known_box.center[:2] for node in found]
        if len({int(np.arctan2(y, x) // (np.pi / 2)) for x, y in off}) > 1:
            return True
    return False
