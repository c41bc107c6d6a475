"""`osmabench scene check`: what is doubtful is named, and every thing is on the sheet."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.small_scenes import ramp_house, room_scene
from typer.testing import CliRunner

from osmabench_ros.cli.main import app
from osmabench_ros.errors import RunError, SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.ground_truth import is_structure
from osmabench_ros.scenes.writing import write_scene_folder
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.simulation.contact_sheet import CAPTION_PX
from osmabench_ros.simulation.scene_sheet import COLUMNS, TILE_PX, WORDS_PX, write_scene_sheet

pytestmark = pytest.mark.gl


def checked(folder: Path, *options: str) -> str:
    words = ['scene', 'check', str(folder), '-o', str(folder.parent / 'a.png'), *options]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_every_thing_is_drawn_and_doubts_are_told(tmp_path: Path) -> None:
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
    rows = -(-len(scene.objects) // COLUMNS)
    tiles = sheet[-rows * (TILE_PX + WORDS_PX) :]
    assert sheet.shape[1] == COLUMNS * TILE_PX
    assert len(sheet) > len(tiles) + CAPTION_PX
    for number in range(len(scene.objects)):
        down, across = divmod(number, COLUMNS)
        top = down * (TILE_PX + WORDS_PX) + WORDS_PX
        tile = tiles[top : top + TILE_PX, across * TILE_PX : (across + 1) * TILE_PX]
        shown = (tile != tile[0, 0]).any(axis=2)
        # Each by itself, whole: it touches no edge.
        assert shown.any()
        assert not shown[[0, -1]].any()
        assert not shown[:, [0, -1]].any()


def test_a_sheet_that_is_there_stays(tmp_path: Path) -> None:
    write_scene_folder(room_scene(), tmp_path / 'lab', False)
    checked(tmp_path / 'lab')
    with pytest.raises(RunError, match=r'a\.png'):
        checked(tmp_path / 'lab')
    checked(tmp_path / 'lab', '--overwrite')
    with pytest.raises(SimulationError, match=r'that ends in \.png'):
        checked(tmp_path / 'lab', '-o', str(tmp_path / 'b.unknown'))


def test_every_storey_is_seen_from_above(tmp_path: Path) -> None:
    scene = ramp_house()
    write_scene_sheet(scene, tmp_path / 'a.png')
    sheet = np.asarray(Image.open(tmp_path / 'a.png'))
    tiles = -(-len(scene.objects) // COLUMNS) * (TILE_PX + WORDS_PX)
    views, rest = divmod(len(sheet) - tiles, 2)
    assert rest == 0
    lower, upper = sheet[CAPTION_PX:views], sheet[views + CAPTION_PX : 2 * views]
    # Two plans of the same size, of which the upper hides what is below.
    assert lower.shape == upper.shape
    assert (lower != upper).any(axis=2).mean() > 0.05
