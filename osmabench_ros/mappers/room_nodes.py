"""Room nodes of a scene graph, with a guess at what each room is for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.mappers.rooms import NO_ROOM, find_rooms
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode, ScoredLabel

FIRST_ROOM_ID = 1_000_001
"""Ids of rooms lie above those of instances."""

TELLING_OBJECTS = MappingProxyType(
    {
        'bathroom': ('bathtub', 'shower', 'toilet', 'toilet paper', 'towel', 'washing machine'),
        'bedroom': ('bed', 'bedside table', 'blanket', 'nightstand', 'pillow', 'wardrobe'),
        'dining room': ('dining chair', 'dining table'),
        'kitchen': (
            'cooktop',
            'fridge',
            'kitchen counter',
            'microwave',
            'oven',
            'range hood',
            'refrigerator',
            'stove',
        ),
        'living room': ('armchair', 'coffee table', 'couch', 'sofa', 'television', 'tv'),
        'study': ('computer', 'desk', 'desk lamp', 'keyboard', 'monitor', 'office chair'),
    }
)
"""Objects by which the purpose of a room is guessed."""

UNKNOWN_ROOM = 'room'


def room_label(object_names: Iterable[str]) -> ScoredLabel:
    """Return the purpose that most telling objects hint at, and their share; else 'room'."""
    names = list(object_names)
    votes = {
        purpose: sum(name in telling for name in names)
        for purpose, telling in TELLING_OBJECTS.items()
    }
    best = max(votes, key=lambda purpose: votes[purpose])
    if not votes[best]:
        return ScoredLabel(UNKNOWN_ROOM)
    return ScoredLabel(best, votes[best] / sum(votes.values()))


def with_rooms(nodes: Sequence[SceneNode], points: NDArray[np.floating]) -> tuple[SceneNode, ...]:
    """Return the nodes with their room as parent, followed by the room nodes.

    `nodes` have boxes; `points` (N, 3) are all points of the map.
    """
    plan = find_rooms(points)
    if not plan.boxes or not nodes:
        return tuple(nodes)
    centers = np.array([node.box.center for node in nodes if node.box is not None])
    rooms = plan.room_of(centers)
    placed = []
    inside: dict[int, list[str]] = {}
    for node, room in zip(nodes, rooms.tolist(), strict=True):
        lies_in_one = node.kind is NodeKind.OBJECT and room != NO_ROOM
        placed.append(replace(node, parent=FIRST_ROOM_ID + room - 1) if lies_in_one else node)
        if lies_in_one:
            inside.setdefault(room, []).append(node.label)
    for room, box in enumerate(plan.boxes, start=1):
        label = room_label(inside.get(room, ()))
        placed.append(SceneNode(FIRST_ROOM_ID + room - 1, NodeKind.ROOM, (label,), box=box))
    return tuple(placed)
