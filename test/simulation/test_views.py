import numpy as np
import pytest
from PIL import Image
from support.commands import osmabench
from support.world.scenes import room_scene

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.simulation.conditions import list_conditions, load_condition
from osmabench_ros.simulation.views import CAPTION_PX, draw_conditions, write_views


@pytest.fixture(scope='module')
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp('room')
    config = write_habitat_dataset(room_scene(), folder)
    # A setup as others write it does not say which lights are lamps.
    setup = folder / 'lights' / 'lights.lighting_config.json'
    setup.write_text(setup.read_text().replace('"lamp": true', '"theirs": true'))
    return str(config)


@pytest.mark.gl
def test_a_sheet_has_a_row_a_condition_and_a_column_a_view(tmp_path, write_file):
    moving = write_file(
        'moving.yaml',
        'moving_objects:\n'
        '  - {names: ["box*"], offset_m: [0, -1.2, 0], span: {segments: [0, 0.2]}}\n',
    )
    names = ['baseline', str(moving), 'baseline', 'nominal']
    steps = []
    views = draw_conditions(
        room_scene(),
        [load_condition(name) for name in names],
        frames=2,
        seed=1,
        size_px=(80, 60),
        progress=lambda _, done: steps.append(done),
    )
    write_views(views, tmp_path / 'a.png')
    sheet = np.asarray(Image.open(tmp_path / 'a.png'))
    row = CAPTION_PX + 60
    assert sheet.shape == (4 * row, 160, 3)
    rows = [sheet[i * row + CAPTION_PX : (i + 1) * row] for i in range(4)]
    # A condition that moves objects leaves none of it to the next one.
    np.testing.assert_array_equal(rows[0], rows[2])
    assert (rows[0] != rows[1]).any()
    assert rows[3].mean() > rows[0].mean()
    assert steps == [0.0, 0.25, 0.5, 0.75]


def test_an_image_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(SimulationError, match=r'a\.unknown'):
        write_views([('a', np.zeros((4, 40, 3), np.uint8))], tmp_path / 'a.unknown')
    assert list(tmp_path.iterdir()) == []


def test_the_command_lists_every_condition():
    for words in ((), ('list',)):
        printed = osmabench('conditions', *words).output
        assert all(name in printed for name in list_conditions())


@pytest.mark.gl
def test_the_preview_tells_which_lights_are_lamps_and_reads_a_condition_once(
    reference, tmp_path, monkeypatch
):
    read = []
    monkeypatch.setattr(
        'osmabench_ros.simulation.conditions.load_condition',
        lambda name: read.append(name) or load_condition(name),
    )
    options = ('--scene', reference, '--frames', 2, '-o', tmp_path / 'a.png')
    result = osmabench('conditions', 'preview', 'nominal', 'camera', *options)
    assert (
        'lamps of scene test/room: "ceiling" of 1 lights (it does not say which, so every point '
        'or spot light of positive intensity is a lamp)'
    ) in ' '.join(result.output.split())
    assert read == ['nominal', 'camera']
    assert Image.open(tmp_path / 'a.png').size == (640, 2 * (CAPTION_PX + 240))
