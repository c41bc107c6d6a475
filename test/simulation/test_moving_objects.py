from dataclasses import replace

import numpy as np
import pytest
from support.world.scenes import box_object, room_scene

from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.simulation.conditions import (
    compute_object_poses,
    find_moving_groups,
    parse_condition,
)
from osmabench_ros.simulation.schedule import Moment


def moving(**section):
    data = {'span': {'segments': [1, 2]}, 'offset_m': [0.4, 0.0, 0.0], **section}
    return parse_condition('m', {'moving_objects': [data]}, 'm.yaml').moving_objects[0]


def poses_at(movements, scene, moment):
    return compute_object_poses(find_moving_groups(movements, scene), moment)


def at(position):
    return Moment(int(position), position % 1.0, 0.0)


def test_what_stands_on_a_moving_object_moves_along():
    scene = room_scene()
    poses = poses_at([moving(names=['box_6'])], scene, at(1.5))
    assert set(poses) == {6, 7}
    for instance, pose in poses.items():
        shift = pose.translation - scene.by_instance[instance].pose.translation
        np.testing.assert_allclose(shift, [0.2, 0, 0], atol=1e-9)


def test_a_lamp_leaves_the_ceiling_and_a_crate_takes_what_is_in_it():
    ceiling = box_object(30, 'floor', (-3, -2, 2.5), (3, 2, 2.6))
    lamp = box_object(31, 'box', (-1.1, -1.1, 2.3), (-0.9, -0.9, 2.5))
    sides = (
        ((-2.0, 1.0, 0.0), (-1.4, 1.6, 0.02)),
        ((-2.0, 1.0, 0.0), (-1.98, 1.6, 0.4)),
        ((-1.42, 1.0, 0.0), (-1.4, 1.6, 0.4)),
        ((-2.0, 1.0, 0.0), (-1.4, 1.02, 0.4)),
        ((-2.0, 1.58, 0.0), (-1.4, 1.6, 0.4)),
    )
    parts = [box_object(32, 'box', *side) for side in sides]
    whole = tuple(
        replace(mesh, vertices=part.pose.transform(mesh.vertices).astype(np.float32))
        for part in parts
        for mesh in part.meshes
    )
    crate = replace(parts[0], meshes=whole, pose=Pose.identity())
    ball = box_object(33, 'ball', (-1.8, 1.2, 0.02), (-1.6, 1.4, 0.2))
    scene = room_scene(extra=(ceiling, lamp, crate, ball))
    assert set(poses_at([moving(names=[lamp.name])], scene, at(1.5))) == {31}
    assert set(poses_at([moving(names=[crate.name])], scene, at(1.5))) == {32, 33}


@pytest.mark.parametrize(
    ('returns', 'way_m'),
    [
        (False, {0.3: 0.0, 1.0: 0.0, 1.25: 0.1, 2.0: 0.4, 4.0: 0.4}),
        (True, {1.25: 0.2, 1.5: 0.4, 1.75: 0.2, 2.0: 0.0}),
    ],
)
def test_objects_rest_before_and_after_and_are_back_if_they_return(returns, way_m):
    scene = room_scene()
    movement = [moving(names=['box_7'], returns=returns)]
    start = scene.by_instance[7].pose.translation
    for position, expected in way_m.items():
        pose = poses_at(movement, scene, at(position))[7]
        np.testing.assert_allclose(pose.translation - start, [expected, 0, 0], atol=1e-9)


def test_a_turn_is_about_the_objects_own_middle():
    scene = room_scene()
    movement = [moving(names=['box_6'], offset_m=[0, 0, 0], turn_deg=90.0)]
    poses = poses_at(movement, scene, at(2.0))
    table = scene.by_instance[6]
    corners = poses[6].transform(table.meshes[0].vertices)
    np.testing.assert_allclose((corners.max(0) + corners.min(0)) / 2, table.box.center, atol=1e-6)
    np.testing.assert_allclose(np.ptp(corners, axis=0), table.box.size[[1, 0, 2]], atol=1e-6)


def test_a_count_is_drawn_with_the_seed():
    extra = tuple(
        box_object(20 + i, 'ball', (-2 + 0.3 * i, 1, 0), (-1.8 + 0.3 * i, 1.2, 0.2))
        for i in range(8)
    )
    scene = room_scene(extra=extra)

    def chosen(seed):
        movement = moving(classes=['ball'], count=3, seed=seed)
        return [item.instance_id for item in movement.select(scene)]

    assert chosen(0) == chosen(0)
    assert len({tuple(chosen(seed)) for seed in range(6)}) > 1
    assert len(moving(classes=['ball'], count=99).select(scene)) == 8


def test_objects_that_are_not_there_are_named():
    with pytest.raises(SimulationError, match=r'test/room has no object that matches robot\*'):
        moving(names=['robot*']).select(room_scene())
