"""`osmabench scene check` names doubtful parts, and draws the scene from above."""

from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from support.commands import output_of
from support.world.scenes import ramp_house, room_scene

from osmabench_ros.errors import RunError, SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.ground_truth import is_structure
from osmabench_ros.scenes.writing import write_scene_folder
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.simulation.views import CAPTION_PX, WIDTH_PX, draw_storeys, write_views

pytestmark = pytest.mark.gl


def checked(folder, *options):
    return output_of('scene', 'check', folder, '-o', folder.parent / 'a.png', *options)


def test_ids_are_drawn_and_doubts_are_named(tmp_path):
    scene = room_scene()
    thing = next(item for item in scene.objects if not is_structure(scene, item))
    raised = replace(thing, pose=Pose(np.eye(3), np.array([0, 0, 0.7])) @ thing.pose)
    spoilt = replace(raised, class_id=UNLABELLED, room_id=None)
    others = tuple(item for item in scene.objects if item is not thing)
    write_scene_folder(replace(scene, objects=(*others, spoilt)), tmp_path / 'lab', False)
    said = checked(tmp_path / 'lab')
    named = f'{thing.instance_id} {thing.name}'
    assert f'without a class: {named}\n' in said
    assert 'held by nothing' in said
    assert named in said.partition('held by nothing')[2].partition('\n')[0]
    sheet = np.asarray(Image.open(tmp_path / 'a.png'))
    assert sheet.shape[1] == WIDTH_PX
    renumbered = [replace(item, instance_id=item.instance_id + 10) for item in scene.objects]
    (_, drawn), (_, other) = (
        next(draw_storeys(item)) for item in (scene, replace(scene, objects=tuple(renumbered)))
    )
    assert (drawn != other).any()
    assert (drawn == other).mean() > 0.99


def test_a_sheet_that_is_there_stays(tmp_path):
    write_scene_folder(room_scene(), tmp_path / 'lab', False)
    checked(tmp_path / 'lab')
    with pytest.raises(RunError, match=r'a\.png'):
        checked(tmp_path / 'lab')
    checked(tmp_path / 'lab', '--overwrite')
    with pytest.raises(SimulationError, match=r'that ends in \.png'):
        checked(tmp_path / 'lab', '-o', str(tmp_path / 'b.unknown'))


def test_every_storey_is_seen_from_above(tmp_path):
    scene = ramp_house()
    write_views(draw_storeys(scene), tmp_path / 'a.png')
    sheet = np.asarray(Image.open(tmp_path / 'a.png'))
    assert len(sheet) % 2 == 0
    views = len(sheet) // 2
    lower, upper = sheet[CAPTION_PX:views], sheet[views + CAPTION_PX :]
    # Two plans of the same size; the upper one hides the objects below.
    assert lower.shape == upper.shape
    assert (lower != upper).any(axis=2).mean() > 0.05
