"""Maps in files: written, read, packed and exported."""

import dataclasses
import io
import itertools
import json
import math
import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from maps.importers.method_files import CLIP, write_bbq, write_conceptgraphs, write_openlex3d
from support import documents
from support.libraries import Lazy, needs
from support.world.graphs import as_map
from support.world.maps import labelled_map, sample_map

from osmabench_ros.base.configuration import config_path
from osmabench_ros.base.files import MARKER
from osmabench_ros.errors import MapError, RunError
from osmabench_ros.geometry.point_files import read_ply, write_ply
from osmabench_ros.maps import storage
from osmabench_ros.maps.export import Holdings, export_openlex3d, export_point_cloud, list_holdings
from osmabench_ros.maps.importer import ImportOptions, World, import_map
from osmabench_ros.maps.map_document import json_schema
from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.maps.storage import SnapshotFolder, list_snapshots
from osmabench_ros.semantics.scene_graph import NodeKind, SceneEdge, SceneGraph, SceneNode

open3d = Lazy('open3d')
BARE = MapHeader(Provenance('bare'))


def assert_equal(one, other):
    """Compare maps, part by part."""
    if dataclasses.is_dataclass(one):
        assert type(one) is type(other)
        for field in dataclasses.fields(one):
            if field.name == 'child_frame_id':  # not kept; it is always the camera
                continue
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        tolerance = 1e-8 if one.dtype == np.float64 else 0  # poses are written as text
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)
    elif isinstance(one, Mapping):
        assert_equal(tuple(sorted(one.items())), tuple(sorted(other.items())))
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for mine, yours in zip(one, other, strict=True):
            assert_equal(mine, yours)
    elif not (isinstance(one, float) and math.isnan(one) and math.isnan(other)):
        assert one == other


def contents(directory):
    files = (path for path in sorted(directory.rglob('*')) if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def without(*parts):
    whole = sample_map()
    dense = dataclasses.replace(whole.dense, **dict.fromkeys(parts))
    return dataclasses.replace(whole, dense=dense)


PARTS = 'colors', 'labels', 'instances', 'scores', 'valid', 'membership'
MAPS = {
    'all parts': sample_map(),
    **{part: without(part) for part in PARTS},
    'a graph only': SemanticMap(
        MapHeader(Provenance('bare'), frame_id='map'), SceneGraph((SceneNode(1),), (), 'map')
    ),
    'an empty cloud': SemanticMap(BARE, dense=DenseMap(np.zeros((0, 3), np.float32))),
}


@pytest.mark.parametrize('name', MAPS)
def test_a_map_survives_and_an_absent_part_stays_absent(tmp_path, name):
    storage.write_map(MAPS[name], tmp_path / 'deep' / 'map')
    again = storage.read_map(tmp_path / 'deep' / 'map')
    assert_equal(again, MAPS[name])
    assert (tmp_path / 'deep/map/cloud.ply').exists() is (again.dense is not None)
    assert_equal(storage.unpack_map(storage.pack_map(again)), again)
    storage.write_map(again, tmp_path / 'again')
    assert contents(tmp_path / 'again') == contents(tmp_path / 'deep' / 'map')


@needs('open3d')
def test_open3d_reads_the_cloud_with_its_labels(tmp_path):
    storage.write_map(sample_map(), tmp_path / 'map')
    path, dense = str(tmp_path / 'map' / 'cloud.ply'), sample_map().dense
    cloud = open3d.io.read_point_cloud(path)
    np.testing.assert_allclose(np.asarray(cloud.points), dense.points)
    np.testing.assert_allclose(np.asarray(cloud.colors) * 255, dense.colors)
    tensors = open3d.t.io.read_point_cloud(path).point
    np.testing.assert_array_equal(tensors['label'].numpy().ravel(), dense.labels)
    np.testing.assert_array_equal(tensors['instance'].numpy().ravel(), dense.instances)


def test_an_existing_directory_is_not_overwritten(tmp_path):
    storage.write_map(sample_map(), tmp_path / 'map')
    before = contents(tmp_path / 'map')
    with pytest.raises(RunError, match='exists'):
        storage.write_map(sample_map(9), tmp_path / 'map')
    assert contents(tmp_path / 'map') == before


def bad_point():
    whole = sample_map()
    whole.dense.points[2, 1] = np.nan
    return whole


@pytest.mark.parametrize(
    ('bad', 'message'),
    [
        (bad_point(), r'cloud\.ply: y, row 2: nan: must be finite'),
        (dataclasses.replace(sample_map(), extras={'value': float('nan')}), 'extras'),
        (SemanticMap(BARE, SceneGraph((SceneNode(1),), (), 'odom')), 'frame "odom"'),
        (SemanticMap(MapHeader(Provenance(''))), r'map\.json: header\.provenance\.method'),
        (SemanticMap(BARE, dense=DenseMap(np.zeros((2, 4)))), r'dense\.points has shape \(2, 4\)'),
    ],
)
def test_a_wrong_map_is_not_written(tmp_path, bad, message):
    with pytest.raises(MapError, match=message):
        storage.write_map(bad, tmp_path / 'map')
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def directory(tmp_path):
    storage.write_map(sample_map(), tmp_path / 'map')
    return tmp_path / 'map'


def put(*path):
    """Return a change of map.json that puts the last argument at the place of the others."""
    *place, value = path

    def change(directory):
        document = json.loads((directory / 'map.json').read_text())
        documents.put(document, *place, value=value)
        (directory / 'map.json').write_text(json.dumps(document))

    return change


def point(name, value):
    """Return a change of a property of point 2."""

    def change(directory):
        columns = read_ply(directory / 'cloud.ply')
        columns[name][2] = value
        with (directory / 'cloud.ply').open('wb') as stream:
            write_ply(stream, columns)

    return change


def array(name, values, dtype=np.int32):
    return lambda directory: np.save(directory / f'{name}.npy', np.array(values, dtype))


def text(name, content):
    return lambda directory: (directory / name).write_text(content)


def gone(name):
    return lambda directory: (directory / name).unlink()


RING = [{'id': i, 'parent': i + 1} for i in range(1, 20_002)] + [{'id': 20_002, 'parent': 20_001}]
ROWS, IDS = 'dense/feature_rows', 'dense/membership_node_ids'
OFFSETS, INDICES = 'dense/membership_offsets', 'dense/membership_point_indices'
FAULTS = [
    (put('format', 'osmabench.semantic_map/2'), 'map.json: format: Input should be'),
    (put('nodes', 1, 'id', 4), 'map.json: nodes[1].id: 4: is taken already'),
    (put('nodes', 1, 'id', 0), 'map.json: nodes[1].id: Input should be greater than'),
    (put('nodes', [{}] * 1001), 'map.json: nodes[0].id: Field required'),
    (put('header', 'provenance', dict.fromkeys(map(str, range(1001)), 0)), 'has 1002 errors'),
    (put('header', {'provenance': {'method': 'm'}}), 'header: lacks frame_id, stamp_ns, complete'),
    (put('nodes', 0, 'captions', [1] * 2000), 'map.json: nodes[0].captions'),
    (put('nodes', 0, 'observations', 2**40), 'map.json: nodes[0].observations'),
    (put('nodes', 1, 'parent', 5), 'map.json: nodes[1].parent: 5: not among the nodes'),
    (put('nodes', 2, 'parent', 9), 'map.json: nodes[2].parent: 9: this node is its own ancestor'),
    (put('nodes', 0, 'colour', 1), 'map.json: nodes[0].colour: Extra inputs'),
    (put('nodes', 0, 'box', 'min', [2.0, 0, 0]), 'map.json: nodes[0].box: box corners are'),
    (put('nodes', 0, 'oriented_box', 'rotation', 0, 0, 3.0),
     'map.json: nodes[0].oriented_box: the rotation of a pose must be orthonormal'),
    (put('nodes', 0, 'feature_row', 2), 'map.json: nodes[0].feature_row: 2: the feature space'),
    (put('nodes', 0, 'feature_space', ''), 'map.json: nodes[0].feature_row: 0: the feature'),
    (put('nodes', 0, 'feature_space', 'x'), 'map.json: nodes[0].feature_space: x: not among'),
    (put('nodes', 0, 'labels', 0, 'class_id', 8), 'map.json: nodes[0].labels: {8}: not in the'),
    (put('nodes', 0, 'labels', 0, 'score', float('nan')),
     'map.json: nodes[0].labels[0].score: Input should be a finite number'),
    (put('edges', 0, 'target', 5), 'map.json: edges[0].target: 5: not among the nodes'),
    (put('label_set', 'classes', 1, 'id', 1), 'map.json: label_set.classes[1].id: 1: is taken'),
    (put('label_set', None), 'map.json: label_set: is missing, though points have labels'),
    (put('dense', 'feature_space', 'dino'), 'map.json: dense.feature_space: "dino"'),
    (put('header', 'provenance', 'source_sha256', 'x'), 'map.json: header.provenance.source_sha'),
    (put('dense', 'points', 7), 'cloud.ply: x: float32 of shape (6,), not float32 of (7,)'),
    (point('z', np.inf), 'cloud.ply: z, row 2: inf: must be finite'),
    (point('label', 17), 'cloud.ply: label, row 2: 17: not in the label set'),
    (point('instance', 5), 'cloud.ply: instance, row 2: 5: not among the nodes'),
    (point('score', np.inf), 'cloud.ply: score, row 2: inf: must not be infinite'),
    (array(ROWS, [0, 1, -1, 0, 2, -1]), f'{ROWS}.npy: row 4: 2: the feature space has 2 rows'),
    (array(ROWS, [0] * 5), f'{ROWS}.npy: int32 of shape (5,), not int32 of (6,)'),
    (array('dense/valid', [1] * 6, np.uint8), 'dense/valid.npy: uint8 of shape (6,), not bool'),
    (array(IDS, [4, 5]), f'{IDS}.npy: row 1: 5: not among the nodes'),
    (array(IDS, [4, 4]), f'{IDS}.npy: row 1: 4: has a row already'),
    (array(IDS, [[4], [7]]), f'{IDS}.npy: int32 of shape (2, 1), not int32 of (N,)'),
    (array(INDICES, [0, 1, 2, 2, 6], np.int64), f'{INDICES}.npy: row 4: 6: there are 6 points'),
    (array(OFFSETS, [0, 3, 4], np.int64), f'{OFFSETS}.npy: row 2: 4: must grow from 0 to 5'),
    (array(OFFSETS, [1, 3, 5], np.int64), f'{OFFSETS}.npy: row 0: 1: must grow from 0 to 5'),
    (array(OFFSETS, [0, 6, 5], np.int64), f'{OFFSETS}.npy: row 2: 5: must grow from 0 to 5'),
    (array(OFFSETS, [0, 5], np.int64), f'{OFFSETS}.npy: has 2 entries, not 3'),
    (array('features/0', [[0] * 5] * 3, np.float32), 'features/0.npy: float32 of shape (3, 5)'),
    (array('features/0', [[1] * 5] * 2, np.float32), 'features/0.npy: row 0, 1: 2.236'),
    (array('features/0', [[np.nan] * 5] * 2, np.float32), 'features/0.npy: row 0, 1: nan: a feat'),
    *((text(name, ''), f'{name}: ') for name in ('dense/valid.npy', 'cloud.ply', 'map.json')),
    *((gone(name), 'does not exist') for name in ('features/0.npy', 'cloud.ply', 'map.json')),
    (text('map.json', '{'), 'map.json: '),
    (text('map.json', '[]'), 'map.json: '),
    (text('extras/extras.json', '[1]'), 'extras/extras.json: must hold an object, not a list'),
    (text('trajectory.tum', '1.0 0 0 0'), 'trajectory.tum: '),
]  # fmt: skip


@pytest.mark.parametrize('row', range(len(FAULTS)), ids=lambda row: FAULTS[row][1])
def test_an_error_is_named_with_its_file_and_place(directory, row):
    change, message = FAULTS[row]
    change(directory)
    found = [str(fault) for fault in storage.check_directory(directory)]
    assert any(message in fault for fault in found), found
    with pytest.raises(MapError, match=rf'{len(found)} errors?: .*{re.escape(found[0])}'):
        storage.read_map(directory)


def test_errors_are_listed_together_and_long_lists_of_rows_are_cut(directory):
    assert storage.check_directory(directory) == []
    put('edges', 0, 'target', 5)(directory)
    put('dense', 'feature_space', '')(directory)
    array(ROWS, [9] * 6)(directory)
    assert sorted(map(str, storage.check_directory(directory))) == [
        'dense/feature_rows.npy: row 0, 1, 2 and 3 more: 9: the feature space has 0 rows',
        'map.json: dense.feature_space: "": not among the feature spaces',
        'map.json: edges[0].target: 5: not among the nodes',
    ]


def test_ancestors_are_found_in_long_chains_and_circles(directory):
    put('edges', [])(directory)
    put('nodes', RING)(directory)
    own = [str(fault) for fault in storage.check_directory(directory) if 'ancestor' in str(fault)]
    assert own == ['map.json: nodes[20000, 20001].parent: 20001: this node is its own ancestor']


def test_the_schema_on_disk_takes_a_map_and_refuses_a_wrong_one(directory):
    schema = json.loads(config_path('schemas', 'semantic_map.schema.json').read_text())
    assert schema == json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads((directory / 'map.json').read_text())
    jsonschema.validate(document, schema)
    document['nodes'][0]['id'] = 'four'
    with pytest.raises(jsonschema.ValidationError, match='four'):
        jsonschema.validate(document, schema)


def archived(*more, method=zipfile.ZIP_STORED):
    """Return the sample's archive with empty members more."""
    target = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(storage.pack_map(sample_map()))) as source,
        zipfile.ZipFile(target, 'w', method) as archive,
    ):
        for name in source.namelist():
            archive.writestr(name, source.read(name))
        for name in more:
            archive.writestr(name, b'')
    return target.getvalue()


def test_a_deflated_archive_is_taken():
    assert_equal(storage.unpack_map(archived(method=zipfile.ZIP_DEFLATED)), sample_map())


def with_a_wrong_size():
    data = archived(method=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo('map.json').file_size
    return data.replace(size.to_bytes(4, 'little'), (8).to_bytes(4, 'little'))


@pytest.mark.filterwarnings('ignore:Duplicate name')
@pytest.mark.parametrize(
    ('make', 'message'),
    [
        *((lambda name=name: archived(name), 'holds .*not a file of a map') for name in (
            '../map.json', '/etc/passwd', 'dense/../../x.npy', 'run.sh', 'dense\\x.npy', 'a/')),
        *((lambda cut=cut: storage.pack_map(sample_map())[:cut], 'not a readable zip archive')
          for cut in (0, 10, 500, -1, -30)),
        (lambda: archived(*(f'features/x{i}.npy' for i in range(1001))), 'at most 1000 are unp'),
        (lambda: archived('cloud.ply'), 'twice'),
        (lambda: archived(method=zipfile.ZIP_BZIP2), 'a compression other than deflate'),
        (with_a_wrong_size, r'not a readable zip archive: .*map\.json'),
    ],
)  # fmt: skip
def test_another_archive_is_refused(make, message):
    with pytest.raises(MapError, match=f'the packed map .*{message}'):
        storage.unpack_map(make())


SUFFIXES = ['.ply', pytest.param('.pcd', marks=needs('open3d'))]


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_points_labels_instances_and_classes_come_back(tmp_path, suffix):
    given = sample_map()
    left_out = export_point_cloud(given, tmp_path / 'out', suffix)
    assert f'{len(given.graph.edges)} edges' in left_out
    assert 'features' in left_out
    made = import_map('pointcloud', tmp_path / 'out')
    for part in ('points', 'colors', 'labels', 'instances'):
        np.testing.assert_array_equal(getattr(made.dense, part), getattr(given.dense, part))
    assert made.label_set.classes == given.label_set.classes


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_a_part_that_a_map_does_not_give_is_absent(tmp_path, suffix):
    points = np.array([[0, 1, 2], [3, 4, 5]], np.float32)
    bare = SemanticMap(sample_map().header, dense=DenseMap(points))
    export_point_cloud(bare, tmp_path / 'out', suffix)
    made = import_map('pointcloud', tmp_path / 'out').dense
    np.testing.assert_array_equal(made.points, points)
    assert (made.colors, made.labels, made.instances) == (None, None, None)
    assert {path.name for path in (tmp_path / 'out').iterdir()} == {f'cloud{suffix}', MARKER}


@needs('open3d')
def test_an_export_is_what_openlex3d_reads(tmp_path):
    write_conceptgraphs(tmp_path / 'in')
    made = import_map('conceptgraphs', tmp_path / 'in', ImportOptions(world=World.Z_UP))
    assert export_openlex3d(made, tmp_path / 'out') == 0
    cloud = open3d.io.read_point_cloud(str(tmp_path / 'out' / 'point_cloud.pcd'))
    index = np.load(tmp_path / 'out' / 'index.npy')
    np.testing.assert_allclose(np.asarray(cloud.points), made.dense.points)
    np.testing.assert_allclose(np.asarray(cloud.colors) * 255, made.dense.colors)
    assert len(index) == len(made.dense.points)
    embeddings = np.load(tmp_path / 'out' / 'embeddings.npy')
    np.testing.assert_array_equal(embeddings[index[0]], CLIP[0])
    again = import_map('openlex3d', tmp_path / 'out')
    np.testing.assert_array_equal(again.dense.points, made.dense.points)


@needs('open3d')
def test_points_without_a_feature_are_left_out_and_counted(tmp_path):
    write_openlex3d(tmp_path / 'in')
    assert export_openlex3d(import_map('openlex3d', tmp_path / 'in'), tmp_path / 'out') == 10
    assert np.load(tmp_path / 'out' / 'index.npy').tolist() == np.repeat([2, 0, 1], 10).tolist()


@pytest.mark.parametrize(
    ('export', 'words'),
    [
        (lambda made, folder: export_point_cloud(made, folder, '.ply'), 'no points'),
        (export_openlex3d, 'no points with features'),
    ],
)
def test_an_export_overwrites_nothing_and_needs_points(tmp_path, export, words):
    (tmp_path / 'thesis').write_text('')
    with pytest.raises(RunError, match='is not empty'):
        export(sample_map(), tmp_path)
    with pytest.raises(MapError, match=words):
        export(dataclasses.replace(sample_map(), dense=None), tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


def test_features_that_text_cannot_query_are_not_exported(tmp_path):
    write_bbq(tmp_path / 'in')
    with pytest.raises(MapError, match='cannot be compared with text'):
        export_openlex3d(import_map('bbq', tmp_path / 'in'), tmp_path / 'out')


def at(stamp_ns):
    source = labelled_map()
    return replace(source, header=replace(source.header, stamp_ns=stamp_ns), dense=None)


@pytest.mark.parametrize('count', [1, 4, 5, 9, 40])
def test_what_is_kept_is_bounded_and_evenly_spaced(count, tmp_path):
    folder = SnapshotFolder(tmp_path / 'snapshots', limit=4)
    for second in range(count):
        folder.keep(at(second))
    stamps = [int(path.name) for path in list_snapshots(folder.directory)]
    assert len(stamps) == len(folder) <= 4
    assert stamps[0] == 0
    gaps = {later - earlier for earlier, later in itertools.pairwise(stamps)}
    assert len(gaps) <= 1
    assert count - stamps[-1] <= max(gaps, default=1)


def test_the_order_of_names_is_that_of_time(tmp_path):
    folder = SnapshotFolder(tmp_path, limit=10)
    for stamp_ns in (9, 10**18, 10, 999):
        assert folder.keep(at(stamp_ns))
    stamps = [int(path.name) for path in list_snapshots(tmp_path)]
    assert stamps == [9, 10, 999, 10**18]


def test_a_map_of_the_same_time_is_kept_once(tmp_path):
    folder = SnapshotFolder(tmp_path, limit=10)
    assert [folder.keep(at(5)) for _ in range(2)] == [True, False]


def test_a_run_without_snapshots_has_none(tmp_path):
    assert list_snapshots(tmp_path / 'map_snapshots') == []


def made(graph, method='test'):
    points = np.zeros((2, 3), np.float32)
    dense = DenseMap(points, instances=np.ones(2, np.int32))
    return as_map(graph, None, dense, method)


@pytest.mark.parametrize('method', ['bbq', 'conceptgraphs', 'test'])
def test_what_a_map_holds_does_not_depend_on_the_name_of_its_method(method):
    room = SceneNode(9, NodeKind.ROOM)
    cup = SceneNode(1, attributes={'color': 'red'})
    table = SceneNode(2, captions=('a table',), parent=9)
    apart = SceneGraph((cup, table, room), (SceneEdge(2, 9, 'in'),))
    expected = Holdings(
        things=True,
        relations=False,
        attributes=frozenset({'color'}),
        captions=True,
        instances=True,
    )
    assert list_holdings(made(apart, method)) == expected
    related = SceneGraph(apart.nodes, (*apart.edges, SceneEdge(1, 2, 'on')))
    assert list_holdings(made(related, method)).relations


def test_a_map_of_nothing_holds_nothing():
    assert list_holdings(as_map()) == Holdings(False, False, frozenset(), False, False)
