"""Recordings, read back by Rerun's own reader."""

import sys
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from support.commands import osmabench

from osmabench_ros.errors import MissingDependencyError
from osmabench_ros.maps.storage import read_map
from osmabench_ros.reports.palette import HALLUCINATED, PointOutcome
from osmabench_ros.reports.rerun_recording import RerunScene, record_runs, write_rerun
from osmabench_ros.runs.matrix_on_disk import open_run
from osmabench_ros.runs.plan import GROUND_TRUTH_FOLDER
from osmabench_ros.sequences.ground_truth import read_ground_truth

# The flawed run of the matrix.
RECORDED = 1


def read(path):
    """Return the rows of every column of every entity."""
    chunk = pytest.importorskip('rerun.chunk', reason='this rerun has no chunk reader')
    found = defaultdict(lambda: defaultdict(list))
    for part in chunk.RrdReader(path).store().stream():
        batch = part.to_record_batch()
        for name in batch.schema.names:
            found[str(part.entity_path)][name] += batch.column(name).to_pylist()
    return found


def only(entity, column):
    [row] = entity[column]
    return row


def colors(entity, kind):
    packed = np.array(only(entity, f'{kind}:colors'), np.uint32)
    return {tuple(int(v >> shift & 255) for shift in (24, 16, 8)) for v in np.unique(packed)}


@pytest.fixture(scope='module')
def entities(matrix, tmp_path_factory):
    pytest.importorskip('rerun', reason="rerun is not installed; pip install '.[rerun]'")
    file = tmp_path_factory.mktemp('rerun') / 'new' / 'run.rrd'
    osmabench('map', 'view', matrix.plans[RECORDED].directory, '--rerun', file)
    assert [item.name for item in file.parent.iterdir()] == ['run.rrd']
    return read(file)


def test_the_whole_map_is_recorded(entities, matrix):
    semantic_map = read_map(matrix.plans[RECORDED].map_directory)
    for name in ('color', 'class'):
        parts = (entities[f'/world/map/{name}{part}'] for part in ('', '/ceiling'))
        count = sum(len(row) for part in parts for row in part['Points3D:positions'])
        assert count == len(semantic_map.dense.points)
    boxes = sum(
        len(only(entities[f'/world/graph/{part}'], 'Boxes3D:centers'))
        for part in ('objects', 'structure')
        if f'/world/graph/{part}' in entities
    )
    assert boxes == len(semantic_map.graph.nodes)
    edges = {
        path: item for path, item in entities.items() if path.startswith('/world/graph/edges')
    }
    drawn = sum(len(only(item, 'LineStrips3D:strips')) for item in edges.values())
    assert drawn == len(semantic_map.graph.edges) > 0


def test_errors_have_their_colours(entities, matrix):
    shown = colors(entities['/world/map/errors'], 'Points3D')
    assert {PointOutcome.CORRECT.color, PointOutcome.WRONG.color} <= shown
    assert shown <= {*(item.color for item in PointOutcome), HALLUCINATED}
    nodes = colors(entities['/world/graph/errors'], 'Boxes3D')
    assert nodes <= {*(item.color for item in PointOutcome), HALLUCINATED}
    assert HALLUCINATED in nodes, 'a node without a label and without a true object'
    truth = read_ground_truth(matrix.plans[0].shared_directory / GROUND_TRUTH_FOLDER)
    surface = (entities[f'/world/ground_truth/surface{part}'] for part in ('', '/ceiling'))
    count = sum(len(row) for part in surface for row in part['Points3D:positions'])
    assert count == len(truth.surface)


def test_every_frame_has_a_pose_and_kept_ones_a_picture(entities):
    camera, image = entities['/world/camera'], entities['/world/camera/image']
    frames = [row for row in camera['frame'] if row is not None]
    assert frames == sorted(set(frames))
    assert image['frame'] == [0, 3, 6]
    assert all(row == ['image/png'] for row in image['EncodedImage:media_type'])
    assert len(only(entities['/world/path'], 'LineStrips3D:strips')[0]) == len(frames)
    assert len(camera['Pinhole:image_from_camera']) == 1
    seconds = [row.total_seconds() for row in image['time']]
    assert seconds == pytest.approx([0.0, 0.6, 1.2])


def test_words_and_figures_come_along(entities, matrix):
    [text] = only(entities['/about'], 'TextDocument:text')
    assert matrix.plans[RECORDED].identity.run_id in text
    assert '| mAcc |' in text
    assert '| wrong class | orange |' in text


def test_a_map_alone_is_recorded_without_errors(matrix, tmp_path):
    pytest.importorskip('rerun', reason="rerun is not installed; pip install '.[rerun]'")
    file = tmp_path / 'map.rrd'
    osmabench('map', 'view', matrix.plans[RECORDED].map_directory, '--rerun', file)
    found = read(file)
    assert '/world/map/class' in found
    assert not [path for path in found if 'errors' in path or 'camera' in path]


def test_a_failure_leaves_the_older_recording(matrix, tmp_path):
    pytest.importorskip('rerun', reason="rerun is not installed; pip install '.[rerun]'")
    file = tmp_path / 'old.rrd'
    file.write_text('older')
    plan = open_run(matrix.plans[RECORDED].directory)

    def broken():
        yield from ()
        raise RuntimeError('cut')

    view = RerunScene('x', read_map(plan.map_directory), frames=broken())
    with pytest.raises(RuntimeError, match='cut'):
        write_rerun(replace(view, intrinsics=plan.config.camera.intrinsics), file, overwrite=True)
    assert file.read_text() == 'older'
    assert [item.name for item in tmp_path.iterdir()] == ['old.rrd']


def test_without_rerun_the_extra_is_named(matrix, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'rerun', None)
    view = RerunScene('x', read_map(matrix.plans[RECORDED].map_directory))
    with pytest.raises(MissingDependencyError, match='pip install .*rerun-sdk'):
        write_rerun(view, tmp_path / 'x.rrd')
    assert not list(tmp_path.iterdir())


def test_an_evaluation_writes_one_too(matrix, tmp_path):
    pytest.importorskip('rerun', reason="rerun is not installed; pip install '.[rerun]'")
    plan, file = matrix.plans[RECORDED], tmp_path / 'map.rrd'
    truth = plan.shared_directory / GROUND_TRUTH_FOLDER
    arguments = [plan.map_directory, '--ground-truth', truth, '--suite', 'osma_segmentation']
    arguments += ['--out', tmp_path / 'out', '--rerun', file, '--device', 'cpu']
    osmabench('map', 'evaluate', *arguments)
    assert '/world/map/errors' in read(file)


def test_several_runs_get_a_file_each(matrix, tmp_path):
    pytest.importorskip('rerun', reason="rerun is not installed; pip install '.[rerun]'")
    runs = [plan.directory for plan in matrix.plans[:2]]
    files = record_runs(runs, tmp_path / 'all.rrd')
    assert [file.name for file in files] == [f'all.{run.name}.rrd' for run in runs]
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_the_verbs_ask_for_rerun_before_they_start(matrix, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'rerun', None)
    for verb in (['run', 'demo'], ['map', 'evaluate', 'nowhere', '--ground-truth', 'nowhere']):
        with pytest.raises(MissingDependencyError):
            osmabench(*verb, '--out', tmp_path / 'out', '--rerun', 'x.rrd')
    assert not list(tmp_path.iterdir())
