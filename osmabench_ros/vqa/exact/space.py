"""Questions of Space3D-Bench's kinds: places, rooms, ways, arrangements, what would fit."""

from collections.abc import Iterator

import numpy as np

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneNode
from osmabench_ros.semantics.storeys import find_storey
from osmabench_ros.vqa import graph_index
from osmabench_ros.vqa.answering.ways import FloorWays
from osmabench_ros.vqa.exact.measurement import LARGEST_COUNT, centers
from osmabench_ros.vqa.exact.view import Draft, SceneView, drafted, sample_pairs, shuffled
from osmabench_ros.vqa.kinds import ALIKE_M, MIRRORED_M, ROW_M, Query, QueryKind

_INSIDE_M, _WALL_M = 0.2, 0.15
_CLOSER_RATIO, _CLOSER_M = 1.5, 1.0
_LEAST_WALK_M, _LEAST_CLEAR_M = 1.5, 0.1
_LEAST_BEND_M, _MOST_OTHER_M = 1.0, 0.3
_STOREY_M = 2.0
_NEARBY_M = 1.5
_MOST_WAYS = 60
"""Ways that are looked for: each is, for several robots, and takes the longest of all drafts."""


def places(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for the coordinates of objects, and whether two are in one room."""
    yield from centers(view, rng, limit)
    inside = [node for node in view.named_boxed if _is_inside_a_room(view, node)]
    for first, second in sample_pairs(rng, inside, limit):
        yield view.about(QueryKind.SAME_ROOM, first, second)


def rooms(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for the areas of rooms, and how many objects of a kind are in one."""
    inside = [node for node in view.named_boxed if _is_inside_a_room(view, node)]
    for node in shuffled(rng, inside)[:limit]:
        yield view.about(QueryKind.ROOM_AREA, node)
        for label in shuffled(rng, view.by_label)[:3]:
            nodes = view.by_label[label]
            if view.has_rival(label) or not all(_is_inside_a_room(view, item) for item in nodes):
                continue
            found = [item for item in nodes if item.parent == node.parent]
            if len(found) <= LARGEST_COUNT and (found or len(nodes) > 1):
                query = Query(QueryKind.COUNT_WITH, (label, view.name(node)))
                yield drafted(query, (*found, node), len(found))


def _is_inside_a_room(view: SceneView, node: SceneNode) -> bool:
    """Return whether an object is in its room and surely in no other, wall or doorway."""
    if node.parent is None or node.box is None:
        return False
    center = node.box.center
    room = view.graph.by_id[node.parent]
    if room.kind is not NodeKind.ROOM or room.box is None:
        return False
    corners = np.array([node.box.minimum, node.box.maximum])
    others = (other for other in view.graph.of_kind(NodeKind.ROOM) if other is not room)
    return bool(
        room.box.contains(center, -_INSIDE_M)
        and room.box.contains(corners, _WALL_M).all()
        and not any(other.box is not None and other.box.contains(center) for other in others)
    )


def ways(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask how long ways are, and which of two is shorter."""
    if not view.ways:
        return
    way_m = view.ways[0].between_m
    lowest_m = min((float(n.known_box.minimum[2]) for n in view.named_boxed), default=0.0)
    floors_m = np.array(view.storeys_m[0] if view.storeys_m else (lowest_m,))

    def storey(node: SceneNode) -> int:
        return int(find_storey(node.known_box.minimum[2], floors_m))

    nodes = [
        node
        for node in view.named_boxed
        if node.known_box.minimum[2] - floors_m[storey(node)] < _STOREY_M
    ]
    for first, second in sample_pairs(rng, nodes, min(limit, _MOST_WAYS)):
        start, goal = first.known_box, second.known_box
        length_m = way_m(start, goal)
        if length_m is None or length_m < _LEAST_WALK_M:
            continue
        yield view.about(QueryKind.WALK, first, second, answer=round(length_m, 3))
        line = view.ways[0].path(start, goal)
        is_level = storey(first) == storey(second)  # stairs turn back
        left_m, right_m = (
            graph_index.bends_m(line) if line is not None and is_level else (0.0, 0.0)
        )
        if max(left_m, right_m) >= _LEAST_BEND_M and min(left_m, right_m) <= _MOST_OTHER_M:
            yield view.about(QueryKind.WALK_SIDE, first, second)
        third = nodes[int(rng.integers(len(nodes)))]
        if third in (first, second):
            continue
        other = third.known_box
        sign = _shorter(view.ways[0], start, goal, other, _CLOSER_RATIO, _CLOSER_M)
        # Half as clearly for other robots, and from other places next to the objects.
        if sign and all(
            _shorter(way, start, goal, other, 1.0, _CLOSER_M / 2) == sign for way in view.ways[1:]
        ):
            names = tuple(view.name(node) for node in (second, third, first))
            yield drafted(Query(QueryKind.WALK_CLOSER, names), (first, second, third))


def _shorter(
    ways: FloorWays,
    start: AxisAlignedBox,
    one: AxisAlignedBox,
    other: AxisAlignedBox,
    ratio: float,
    least_m: float,
) -> int:
    """Return -1 if the way to the first is shorter by so much, 1 if the other's is, else 0."""
    first_m = ways.between_m(start, one)
    second_m = ways.between_m(start, other)
    if first_m is None or second_m is None:
        return 0
    near, far = sorted((first_m, second_m))
    if far < max(near * ratio, near + least_m):
        return 0
    return -1 if first_m < second_m else 1


def patterns(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask about repeated objects: how many next to another, equally tall, in a row."""
    several = [label for label, nodes in view.by_label.items() if len(nodes) > 1]
    several = [label for label in several if not view.has_rival(label)]
    for label in several:
        nodes = [node for node in view.by_label[label] if node.box is not None]
        if len(nodes) < len(view.by_label[label]):
            continue
        spread = graph_index.height_spread_m(nodes)
        if spread <= ALIKE_M / 3 or spread >= 2 * ALIKE_M:
            yield drafted(Query(QueryKind.ALIKE, (label,)), nodes)
        off = graph_index.off_line_m(nodes)
        if len(nodes) > 2 and (off <= ROW_M / 3 or off >= 2 * ROW_M):
            yield drafted(Query(QueryKind.ROW, (label,)), nodes)
        if len(nodes) == 2:
            yield from _draft_symmetry(view, label, nodes)
    inside = [node for node in view.named_boxed if _is_inside_a_room(view, node)]
    for first, second in sample_pairs(rng, inside, limit):
        areas = [_area_m2(view, node) for node in (first, second)]
        ratio = max(areas) / min(areas)
        if first.parent != second.parent and not 1.1 < ratio < 1.5:
            yield view.about(QueryKind.ROOMS_ALIKE, first, second)
    for target in shuffled(rng, view.named)[:limit]:
        beside = set(view.index.sources(RelationType.NEXT_TO.value, target.id))
        for label in several:
            found = [node for node in view.by_label[label] if node.id in beside]
            if found and target not in view.by_label[label]:
                query = Query(QueryKind.ROUND, (label, view.name(target)))
                yield drafted(query, (*found, target), len(found))


def _draft_symmetry(view: SceneView, label: str, nodes: list[SceneNode]) -> Iterator[Draft]:
    """Yield whether two objects are symmetric about others between or next to them."""
    between = np.mean([node.known_box.center[:2] for node in nodes], axis=0)
    for about in view.named_boxed:
        # Only objects nearby are worth asking about.
        if about in nodes or np.linalg.norm(about.known_box.center[:2] - between) > _NEARBY_M:
            continue
        error_m = graph_index.mirror_error_m(nodes, about)
        if error_m <= MIRRORED_M / 3 or error_m >= 2 * MIRRORED_M:
            query = Query(QueryKind.MIRRORED, (label, view.name(about)))
            yield drafted(query, (*nodes, about))


def _area_m2(view: SceneView, node: SceneNode) -> float:
    assert node.parent is not None
    box = view.graph.by_id[node.parent].box
    return 0.0 if box is None else float(np.prod(box.size[:2]))


def floors(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask which objects are upstairs, and on which floor one is, where there are several."""
    storeys_m = view.storeys_m[0] if view.storeys_m else ()
    if len(storeys_m) < 2:
        return
    for node in shuffled(rng, view.named_boxed)[:limit]:
        low, high = find_storey([node.known_box.minimum[2], node.known_box.maximum[2]], storeys_m)
        if low == high:
            yield view.about(QueryKind.UPSTAIRS, node)
            yield view.about(QueryKind.FLOOR_OF, node)


def fits(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask whether one object would fit on top of another, only if along the axes."""
    nodes = [node for node in view.named_boxed if _is_along_axes(node)]
    for upper, lower in sample_pairs(rng, nodes, limit):
        slack = graph_index.slack_m(upper.known_box, lower.known_box)
        if abs(slack) >= _LEAST_CLEAR_M:
            yield view.about(QueryKind.FITS_ON, upper, lower)
        other = nodes[int(rng.integers(len(nodes)))]
        rest = graph_index.slack_m(other.known_box, lower.known_box)
        low, high = sorted((slack, rest))
        if other not in (upper, lower) and low <= -_LEAST_CLEAR_M and high >= _LEAST_CLEAR_M:
            yield view.about(QueryKind.WHICH_FITS, upper, other, lower)


def _is_along_axes(node: SceneNode) -> bool:
    """Return whether the box along the axes of the world is nearly the object's own box."""
    own, box = node.oriented_box, node.box
    if own is None or box is None:
        return True
    return bool(np.allclose(np.sort(own.size), np.sort(box.size), atol=_LEAST_CLEAR_M / 2))
