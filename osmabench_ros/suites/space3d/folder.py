"""Scene folders of Space3D-Bench, read with every fault named, and ways on their meshes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from osmabench_ros.base.documents import read_json, read_text
from osmabench_ros.base.images import undecoded_image
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import QuestionError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.labels import is_structure, normalised_name
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode, ScoredLabel

WELD_M = 1e-3
"""Vertices nearer than this are one: exporters repeat them for each polygon."""

SPACING_M = 0.1
LEAST_POINTS, MOST_POINTS = 3, 40
"""Points inside each edge that a way may cross at."""
QUESTIONS, GROUND_TRUTH, ANSWERS = 'questions.json', 'ground_truth.json', 'answers.json'
DETECTIONS, NAVMESH, IMAGES = 'misc/detections.json', 'misc/navmesh.txt', 'img'

Triple = tuple[float, float, float]


class DetectedObject(Strict):
    """An object of `detections.json`; metres, z up, as all of the file.

    The box is along the axes of the world: `rotation` is kept, and not applied.
    """

    class_name: str = Field(min_length=1)
    center: Triple
    sizes: Triple
    rotation: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = None


class DetectedRoom(Strict):
    """A room of `detections.json`, with the objects that are listed in it."""

    center: Triple
    sizes: Triple
    objects: dict[str, DetectedObject] = Field(default_factory=dict)


class ShownAnswer(Strict):
    """A right answer that an image shows."""

    image_path: str = Field(min_length=1)
    example_answer: str


class ReferenceAnswer(Strict):
    """What `ground_truth.json` says of a question: the right answer, and when to accept one."""

    answer: str | ShownAnswer
    prompt: str

    @property
    def context(self) -> str:
        """The right answer, or the example of one, as a text."""
        return self.answer if isinstance(self.answer, str) else self.answer.example_answer


@dataclass(frozen=True)
class DetectedScene:
    """Rooms by name, and objects by their id in the file; `room_of` has those known."""

    rooms: Mapping[str, AxisAlignedBox]
    objects: Mapping[int, DetectedObject]
    room_of: Mapping[int, str]


@dataclass(frozen=True)
class SceneFolder:
    """One scene of Space3D-Bench; each file is read when it is first asked for.

    QuestionError names the file, and the key or line, that is missing or malformed.
    """

    path: Path

    @property
    def scene(self) -> str:
        """Name of the scene, as of the folder."""
        return self.path.resolve().name

    @cached_property
    def questions(self) -> Mapping[str, str]:
        """Questions by number."""
        return _texts(self.path / QUESTIONS, 'one question a number')

    @cached_property
    def references(self) -> Mapping[str, ReferenceAnswer]:
        """Right answers by number; every question has one."""
        path = self.path / GROUND_TRUTH
        data = read_json(path, QuestionError)
        found = validated(dict[str, ReferenceAnswer], data, str(path), QuestionError)
        missing = [number for number in self.questions if number not in found]
        if missing:
            raise QuestionError(f'{path}: question {missing[0]} of {QUESTIONS} is missing')
        return found

    def answers(self, path: Path | None = None) -> Mapping[str, str]:
        """Return a system's answers by number, those next to the questions unless named."""
        chosen = path or self.path / ANSWERS
        found = _texts(chosen, 'one answer a number')
        unasked = [number for number in found if number not in self.questions]
        if unasked:
            raise QuestionError(
                f'{chosen}: answer {unasked[0]} has no question in {self.path / QUESTIONS}; '
                'name the answers of this scene'
            )
        return found

    def image(self, number: str) -> bytes:
        """Return the PNG that shows the right answer of a question."""
        shown = self.references[number].answer
        if isinstance(shown, str):
            raise QuestionError(f'{self.path / GROUND_TRUTH}: question {number} has no image')
        # Published paths begin at the repository, "data/<scene>/img/"; the images lie here.
        name = PurePosixPath(shown.image_path).name
        path = self.path / IMAGES / name
        data = read_bytes(path, QuestionError)
        undecoded_image(data, path, QuestionError, ('PNG',))
        return data

    @cached_property
    def detections(self) -> DetectedScene:
        """Rooms and objects; objects are in rooms, or all under "objects"."""
        path = self.path / DETECTIONS
        data = read_json(path, QuestionError)
        if not isinstance(data, dict):
            raise QuestionError(f'{path}: must be an object of rooms by name')
        loose = data.pop('objects', {})
        rooms = validated(dict[str, DetectedRoom], data, str(path), QuestionError)
        of_no_room = validated(dict[str, DetectedObject], loose, f'{path}: objects', QuestionError)
        objects, room_of = {}, {}
        listed = [(name, rooms[name].objects) for name in rooms]
        for room, group in [*listed, ('', of_no_room)]:
            for key, item in group.items():
                number = _object_id(key, path)
                if number in objects:
                    raise QuestionError(f'{path}: object {number} is there twice')
                _box(item, f'{path}: object {number}')
                objects[number] = item
                if room:
                    room_of[number] = room
        boxes = {name: _box(room, f'{path}: room "{name}"') for name, room in rooms.items()}
        for number, item in objects.items():
            if number not in room_of and (found := _room_at(item.center, boxes)):
                room_of[number] = found
        return DetectedScene(boxes, dict(sorted(objects.items())), room_of)

    @cached_property
    def navigation(self) -> TriangleNavigation:
        """Where one can walk."""
        path = self.path / NAVMESH
        vertices, triangles = parse_navmesh(read_text(path, QuestionError), str(path))
        return TriangleNavigation(vertices, triangles)

    @cached_property
    def graph(self) -> SceneGraph:
        """The detections as a scene graph, relations from the boxes; ids are one more than theirs.

        The published ids begin at 0, which no node may have; `source_id` has the published one.
        """
        known = self.detections
        rooms = {
            name: max(known.objects, default=0) + 2 + place
            for place, name in enumerate(known.rooms)
        }
        nodes = [
            SceneNode(
                number + 1,
                NodeKind.BACKGROUND if is_structure(label) else NodeKind.OBJECT,
                (ScoredLabel(label, 1.0),),
                box=_box(item, ''),
                parent=rooms.get(known.room_of.get(number, '')),
                source_id=str(number),
            )
            for number, item in known.objects.items()
            for label in (normalised_name(item.class_name),)
        ]
        nodes += [
            SceneNode(
                rooms[name],
                NodeKind.ROOM,
                (ScoredLabel(normalised_name(name), 1.0),),
                box=box,
                source_id=name,
            )
            for name, box in known.rooms.items()
        ]
        return SceneGraph(tuple(nodes), derive_relations(nodes))


def _texts(path: Path, what: str) -> dict[str, str]:
    data = read_json(path, QuestionError)
    if not isinstance(data, dict) or not all(isinstance(text, str) for text in data.values()):
        raise QuestionError(f'{path}: must be an object with {what}, all of them texts')
    return data


def _object_id(key: str, path: Path) -> int:
    if not re.fullmatch(r'\d{1,9}', key):
        raise QuestionError(f'{path}: object id "{key}" is not a number')
    return int(key)


def _box(item: DetectedObject | DetectedRoom, where: str) -> AxisAlignedBox:
    center, half = np.array(item.center), np.array(item.sizes) / 2
    if (half < 0).any():
        raise QuestionError(f'{where}: sizes {item.sizes} must not be negative')
    return AxisAlignedBox(center - half, center + half)


def _room_at(point_m: Triple, rooms: Mapping[str, AxisAlignedBox]) -> str:
    holding = [name for name, box in rooms.items() if box.contains(np.array(point_m))]
    return min(holding, key=lambda name: (rooms[name].volume, name), default='')


def parse_navmesh(text: str, where: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return vertices (V, 3) in metres and triangles (F, 3) of a text navmesh.

    Its first line has their numbers, then come the vertices and the triangles, a line each.
    QuestionError names the line at fault.
    """
    lines = text.splitlines()
    counts = lines[0].split() if lines else []
    if len(counts) != 2 or not all(item.isdigit() for item in counts):
        raise QuestionError(f'{where}:1: must have the numbers of vertices and of triangles')
    vertices, triangles = map(int, counts)
    rows = [(i, line.split()) for i, line in enumerate(lines[1:], start=2) if line.strip()]
    if len(rows) != vertices + triangles or not triangles:
        raise QuestionError(
            f'{where}: {vertices} vertices and {triangles} triangles are announced, '
            f'{len(rows)} lines follow; at least one triangle is needed'
        )
    points = np.empty((vertices, 3))
    faces = np.empty((triangles, 3), np.int64)
    for place, (number, row) in enumerate(rows):
        try:
            if place < vertices:
                points[place] = [float(item) for item in row]
            else:
                faces[place - vertices] = [int(item) for item in row]
        except (ValueError, OverflowError):
            what = 'three numbers' if place < vertices else 'three numbers of vertices'
            raise QuestionError(f'{where}:{number}: must have {what}') from None
        found = points[place] if place < vertices else faces[place - vertices]
        if place < vertices and not np.isfinite(found).all():
            raise QuestionError(f'{where}:{number}: coordinates must be finite')
        if place >= vertices and not ((found >= 0) & (found < vertices)).all():
            raise QuestionError(f'{where}:{number}: vertices are numbered 0 to {vertices - 1}')
    return points, faces


class TriangleNavigation:
    """Where one can walk: triangles in the world, z up.

    The shortest way crosses edges at their ends or at points SPACING_M apart, at least
    LEAST_POINTS of them in an edge (Lanthier, Maheshwari, Sack, Algorithmica 2001). It is never
    shorter than the true one, and 1 to 2 % longer in a plane of triangles of 0.1 m, less in one of
    larger triangles.

    Parameters
    ----------
    vertices : ndarray of float64, shape (V, 3)
        Metres.
    triangles : ndarray of int64, shape (F, 3)
        Vertex indices.
    """

    def __init__(self, vertices: NDArray[np.float64], triangles: NDArray[np.int64]) -> None:
        _, first, row = np.unique(
            np.round(vertices / WELD_M), axis=0, return_index=True, return_inverse=True
        )
        welded = row.reshape(-1)[triangles]
        whole = (welded != np.roll(welded, 1, axis=1)).all(axis=1)
        self.vertices = np.asarray(vertices[first], np.float64)
        self.triangles = np.asarray(welded[whole] if whole.any() else welded, np.int64)

    def snapped(self, point_m: ArrayLike) -> tuple[NDArray[np.float64], int]:
        """Return the point (3,) of the mesh nearest to one, and the triangle that it is in."""
        from trimesh.triangles import closest_point

        corners = self.vertices[self.triangles]
        point = np.broadcast_to(np.asarray(point_m, np.float64), (len(corners), 3))
        found = closest_point(corners, point)
        nearest = int(np.argmin(np.linalg.norm(found - point, axis=1)))
        return np.asarray(found[nearest]), nearest

    def distance_m(self, start_m: ArrayLike, goal_m: ArrayLike) -> float:
        """Return the length of the way between two points, both snapped; inf if there is none."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import dijkstra

        (start, first), (goal, last) = self.snapped(start_m), self.snapped(goal_m)
        if first == last:
            return float(np.linalg.norm(goal - start))
        points, of_triangle, edges = self._crossings
        size = len(points)
        rows, columns, lengths = [edges.row], [edges.col], [edges.data]
        for place, end, triangle in ((size, start, first), (size + 1, goal, last)):
            around = of_triangle[triangle]
            rows.append(np.full(len(around), place))
            columns.append(around)
            # A length of 0 would be no edge.
            away = np.linalg.norm(points[around] - end, axis=1)
            lengths.append(np.maximum(away, 1e-9))
        graph = coo_array(
            (np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns))),
            shape=(size + 2, size + 2),
        ).tocsr()
        found = float(dijkstra(graph, directed=False, indices=size)[size + 1])
        return found if math.isfinite(found) else math.inf

    @cached_property
    def _crossings(self) -> tuple[NDArray[np.float64], list[NDArray[np.int64]], Any]:
        """Points where ways cross edges, the points of each triangle, and ways between them."""
        from scipy.sparse import coo_array

        sides = np.sort(self.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        edges, side = np.unique(sides, axis=0, return_inverse=True)
        ends = self.vertices[edges]
        lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
        counts = np.clip(np.ceil(lengths / SPACING_M) - 1, LEAST_POINTS, MOST_POINTS).astype(int)
        starts = len(self.vertices) + np.concatenate([[0], np.cumsum(counts)])
        owner = np.repeat(np.arange(len(edges)), counts)
        rank = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        share = ((rank + 1) / (counts[owner] + 1))[:, None]
        inside = ends[owner, 0] * (1 - share) + ends[owner, 1] * share
        points = np.concatenate([self.vertices, inside])
        side = side.reshape(-1, 3)
        of_triangle, pairs = [], []
        for corners, own in zip(self.triangles, side, strict=True):
            along = [np.arange(starts[edge], starts[edge + 1]) for edge in own]
            around = np.concatenate([corners, *along])
            of_triangle.append(around)
            a, b = np.triu_indices(len(around), 1)
            pairs.append(np.column_stack([around[a], around[b]]))
        size = len(points) + 2
        low, high = np.sort(np.concatenate(pairs), axis=1).T
        # As one number each: rows of a table take ten times as long to sort out.
        both = np.column_stack(np.divmod(np.unique(low * size + high), size))
        ways = np.linalg.norm(points[both[:, 0]] - points[both[:, 1]], axis=1)
        graph = coo_array((np.maximum(ways, 1e-9), (both[:, 0], both[:, 1])), shape=(size, size))
        return points, of_triangle, graph
