import numpy as np
import pytest
from support.world import box_room
from support.world.frames import map_frames

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.mappers import bundled
from osmabench_ros.mappers.oracle import OracleMapper
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.visibility import sample_surface
from osmabench_ros.semantics.scene_graph import NodeKind, SceneNode


def wall(start, end, height=2.5):
    """Return points of an upright wall between two places on the floor."""
    along = np.linspace(start, end, max(int(np.linalg.norm(np.subtract(end, start)) / 0.04), 2))
    heights = np.arange(0.02, height, 0.04)
    grid = np.repeat(along, len(heights), axis=0)
    return np.column_stack([grid, np.tile(heights, len(along))])


def floor(x, y):
    grid = np.stack(np.meshgrid(np.arange(*x, 0.04), np.arange(*y, 0.04)), -1).reshape(-1, 2)
    return np.column_stack([grid, np.zeros(len(grid))])


def two_rooms(door_m):
    """Return rooms of 4 x 4 m and 3 x 4 m with a door between them."""
    half = door_m / 2
    outside = [((0, 0), (7, 0)), ((7, 0), (7, 4)), ((7, 4), (0, 4)), ((0, 4), (0, 0))]
    between = [((4, 0), (4, 2 - half)), ((4, 2 + half), (4, 4))]
    header = wall((4, 2 - half), (4, 2 + half))
    return np.concatenate(
        [
            floor((0.02, 7), (0.02, 4)),
            header[header[:, 2] > 2.05],
            *(wall(*ends) for ends in outside + between),
        ]
    )


def test_a_door_parts_two_rooms():
    plan = bundled.find_rooms(two_rooms(door_m=0.9))
    assert len(plan.boxes) == 2
    places = np.array([[1.0, 1, 1], [3.5, 3, 1], [5, 1, 1], [6.5, 3.5, 1]])
    assert plan.room_of(places).tolist() == [1, 1, 2, 2]  # the larger room comes first
    np.testing.assert_allclose(plan.boxes[0].size, (4, 4, 2.5), atol=0.2)
    np.testing.assert_allclose(plan.boxes[1].minimum, (4, 0, 0), atol=0.2)


def test_a_wide_opening_does_not():
    assert len(bundled.find_rooms(two_rooms(door_m=2.4)).boxes) == 1


def test_furniture_does_not_part_a_room():
    top = np.add(floor((1, 2.2), (0.5, 3.5)), (0, 0, 0.75))
    plan = bundled.find_rooms(np.concatenate([two_rooms(0.9), top, np.add(top, (0, 0, 0.4))]))
    assert len(plan.boxes) == 2
    assert plan.room_of(np.array([[1.6, 2.0, 0.8]])).tolist() == [1]


def test_rooms_above_each_other_are_two():
    upper = np.add(two_rooms(0.9), (0, 0, 2.8))
    ceiling = np.add(floor((0.02, 7), (0.02, 4)), (0, 0, 2.5))
    points = np.concatenate([two_rooms(0.9), ceiling, upper])
    places = [(1, 1, 0.2), (1, 1, 3.0), (6, 1, 3.0), (5, 1, 0.2)]
    nodes = tuple(
        SceneNode(number, NodeKind.OBJECT, box=AxisAlignedBox(np.array(low), np.array(low) + 0.1))
        for number, low in enumerate(places, start=1)
    )
    placed = bundled.with_rooms(nodes, points)
    found = [node.parent - bundled.FIRST_ROOM_ID for node in placed[:4]]
    assert found == [0, 2, 3, 1]
    rooms = [node for node in placed if node.kind is NodeKind.ROOM]
    assert [round(float(room.box.minimum[2]) / 2.8) for room in rooms] == [0, 0, 1, 1]


def test_things_in_walls_belong_to_the_nearest_room():
    plan = bundled.find_rooms(two_rooms(0.9))
    assert plan.room_of(np.array([[-0.05, 2, 1.5], [7.04, 2, 1.5]])).tolist() == [1, 2]


def test_a_closet_is_no_room_and_no_points_are_none():
    assert bundled.find_rooms(two_rooms(0.9)[:0]).boxes == ()
    closet = np.concatenate([floor((0, 1), (0, 1)), *(wall((x, 0), (x, 1)) for x in (0, 1))])
    plan = bundled.find_rooms(closet)
    assert plan.boxes == ()
    assert plan.room_of(closet[:2]).tolist() == [bundled.NO_ROOM, bundled.NO_ROOM]


@pytest.mark.parametrize('seed', [1, 2])
def test_rooms_of_the_apartment_are_found(seed):
    scene = load_scene('apartment', seed=seed)
    cloud = sample_surface(scene, 600, 0)
    plan = bundled.find_rooms(cloud.points)
    things = [item for item in scene.objects if not scene.label_set.by_id[item.class_id].structure]
    found = plan.room_of(np.array([item.box.center for item in things]))
    true = np.array([item.room_id for item in things])
    matched = sum(max(np.sum(true[found == room] == t) for t in set(true)) for room in set(found))
    assert matched / len(things) > 0.93
    assert abs(len(plan.boxes) - len(scene.rooms)) <= 1


def test_the_objects_of_a_room_tell_its_purpose():
    assert bundled.room_label(['stove', 'refrigerator', 'tv', 'cup']).name == 'kitchen'
    assert bundled.room_label(['stove', 'refrigerator', 'tv', 'cup']).score == pytest.approx(2 / 3)
    assert bundled.room_label(['cup']).name == 'room'


def test_nodes_get_their_room_as_parent():
    mapper = OracleMapper(label_set=box_room.LABELS, seed=0, options={})
    graph = map_frames(mapper, box_room.frames(size=(80, 60))).graph
    rooms = list(graph.of_kind(NodeKind.ROOM))
    assert [room.id for room in rooms] == [bundled.FIRST_ROOM_ID]
    assert rooms[0].label == 'living room'
    np.testing.assert_allclose(rooms[0].box.size[:2], 6.0, atol=0.3)
    assert {node.parent for node in graph.of_kind(NodeKind.OBJECT)} == {bundled.FIRST_ROOM_ID}
    assert {node.parent for node in graph.of_kind(NodeKind.BACKGROUND)} == {None}
    assert any(
        edge.target == bundled.FIRST_ROOM_ID and edge.type == 'part of' for edge in graph.edges
    )


def test_without_rooms_nodes_stay_as_they_are():
    nodes = (SceneNode(1),)
    assert bundled.with_rooms(nodes, np.zeros((0, 3))) == nodes
