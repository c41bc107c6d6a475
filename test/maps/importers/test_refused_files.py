"""Files that do not fit, are damaged, or are not a map: one clear error that names them."""

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import (
    CHAIR,
    CLIP,
    EMBEDDINGS,
    FORMS,
    INDEX,
    KEYS,
    TABLE,
    gray,
    write_bbq,
    write_cloud,
    write_conceptfusion,
    write_conceptgraphs,
    write_hovsg_flat,
    write_hovsg_graph,
    write_openfusion,
    write_openlex3d,
    write_openmask3d,
    write_openscene,
    write_ovo,
    write_pickle,
    write_rtabmap,
)
from maps.test_storage import assert_equal
from support.libraries import Lazy, needs

from osmabench_ros.base.fence import VARIABLE
from osmabench_ros.errors import LimitError, MapError, OsmabenchError
from osmabench_ros.maps.importer import ImportOptions, import_map, list_importers
from osmabench_ros.maps.importers import assembly
from osmabench_ros.maps.storage import pack_map, unpack_map
from osmabench_ros.semantics.labels import LabelSet

torch, h5py = Lazy('torch'), Lazy('h5py')
OPTIONS = ImportOptions(label_set=LabelSet.from_names('small', ['chair', 'table']))
DAMAGES = 20


def changed(path, change):
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


def other_graph(folder):
    write_conceptgraphs(folder)
    path = folder / 'sg_cache' / 'scene_graph.json'
    changed(path, lambda nodes: [nodes[0], nodes[1] | {'id': 40}, nodes[2]])


def two_maps(folder):
    for name in ('full_pcd_one_post.pkl.gz', 'full_pcd_two_post.pkl.gz'):
        write_pickle(folder / 'pcd_saves' / name, {'objects': []})


def pickled(*objects, key='objects'):
    return lambda folder: write_pickle(folder / 'full_pcd_x.pkl.gz', {key: list(objects)})


def then(write, spoil):
    """Return a function that writes files, and then changes some."""

    def both(folder):
        write(folder)
        spoil(folder)

    return both


def cloud(**columns):
    return lambda folder: write_cloud(folder / 'a.ply', CHAIR, **columns)


def chair_as(name):
    return lambda folder: write_cloud(folder / name, CHAIR)


def ovo(**params):
    return lambda folder: write_ovo(folder, map_params=params or 3)


def other_database(folder):
    (folder / 'rtabmap.db').unlink()
    with sqlite3.connect(folder / 'rtabmap.db') as database:
        database.execute('CREATE TABLE Other (id INTEGER)')
    database.close()


def odd_mask(folder):
    torch.save({'feat': torch.ones(3, 4), 'mask_full': torch.ones(5).bool()}, folder / 'a_0.pt')
    write_cloud(folder / 'a.ply', CHAIR[:5])


def pcd(data, count=9_000_000_000, rows='1 2 3\n' * 9):
    header = (
        'VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n'
        f'WIDTH {count}\nHEIGHT 1\nPOINTS {count}\nDATA {data}\n'
    )
    return lambda folder: (folder / 'a.pcd').write_text(header + rows)


NODE = 'graph/objects/0_0_0.json'
REFUSED = [
    ('conceptgraphs', two_maps, 'more than one ConceptGraphs map'),
    ('conceptgraphs', other_graph, 'names object 40'),
    ('conceptgraphs', pickled({'pcd_np': CHAIR[:, :2]}), r'\[0\]: "pcd_np" has shape \(40, 2\)'),
    ('conceptgraphs', pickled({}), r'objects\[0\] has no numbers "pcd_np"'),
    ('conceptgraphs', pickled(3), r'objects\[0\] is not a dictionary'),
    ('conceptgraphs', pickled(key='things'), 'no list "objects"'),
    ('conceptgraphs', pickled({'pcd_np': TABLE, 'clip_ft': CLIP[0]},
                              {'pcd_np': TABLE, 'clip_ft': CLIP[0][:5]}), 'different lengths'),
    ('conceptgraphs', pickled({'pcd_np': TABLE, 'clip_ft': CLIP[0] * np.nan}), 'NaN or infinite'),
    ('bbq', then(write_bbq, lambda folder: changed(
        folder / 'baseline_apt_0.json', lambda _: [{'id': 5, 'description': 'a lamp'}])),
     'has id 5, but the map has 2 objects'),
    ('bbq', then(write_bbq, lambda folder: changed(
        folder / 'baseline_apt_0.json', lambda _: [{}])), 'json: entry 0 is malformed: KeyError'),
    ('hovsg', then(write_hovsg_graph, lambda folder: changed(
        folder / NODE, lambda node: node | {'embedding': ['x']})), r'0_0_0\.json: .*"embedding"'),
    ('hovsg', then(write_hovsg_graph, lambda folder: (folder / NODE).write_text('{')),
     r'0_0_0\.json.* is not JSON'),
    ('hovsg', then(write_hovsg_flat, lambda folder: (folder / 'objects/pcd_1.ply').unlink()),
     r'features \(2, 1024\), .* has 1 segments'),
    ('openscene', then(write_openscene, chair_as('gt.ply')), r'\(100, 768\), .* has 40 points'),
    ('openscene', odd_mask, 'marks 5 points'),
    ('openmask3d', then(write_openmask3d, chair_as('scene.ply')),
     r'masks \(80, 3\), .* has 40 points'),
    ('openmask3d', then(write_openmask3d, lambda folder: np.save(
        folder / 'scene_openmask3d_features.npy', CLIP[:2])), '3 masks, but features for 2'),
    ('openlex3d', lambda folder: write_openlex3d(folder, INDEX[:5]),
     r'index\.npy is int64 \(5,\) for 40 points'),
    ('openlex3d', lambda folder: write_openlex3d(folder, INDEX + 1), 'refers to row 3'),
    ('openlex3d', lambda folder: write_openlex3d(folder, INDEX, CLIP[0]),
     r'embeddings\.npy is float32 of shape \(1024,\)'),
    ('openfusion', lambda folder: write_openfusion(folder, emb_keys=KEYS + 2), 'the 3 rows'),
    ('openfusion', lambda folder: write_openfusion(folder, emb_keys=KEYS[:2]), '32 keys, 80 coo'),
    ('openfusion', lambda folder: write_openfusion(folder, emb_dict=None), 'lacks emb_dict'),
    ('openfusion', lambda folder: write_openfusion(folder, emb_dict=np.array([{}], object)),
     'cannot be read'),
    ('ovo', ovo(), 'does not hold "map_params"'),
    ('ovo', ovo(obj_ids=1), 'the tensor "xyz" holds no array'),
    ('ovo', ovo(xyz=CHAIR, obj_ids=np.ones(2)), r'"xyz" is \(40, 3\)'),
    ('conceptfusion', lambda folder: write_conceptfusion(folder, embeddings=EMBEDDINGS[:5]),
     '40 points, but values for 5'),
    ('pointcloud', cloud(label=np.full(40, 0.5)), 'a label is not a whole number'),
    ('pointcloud', cloud(label=np.full(40, 3, np.int32)), r'a\.ply: label ids \[3\] are not in'),
    ('pointcloud', pcd('binary'), r'a\.pcd cannot be read as PCD'),
    ('pointcloud', pcd('binary_compressed'), r'a\.pcd cannot be read as PCD'),
    ('pointcloud', pcd('ascii'), r'a\.pcd has 9 rows, and POINTS is 9000000000'),
    ('pointcloud', pcd('ascii', 2, '1 2 3\n1 x 3\n'), r"a\.pcd: a row is malformed: .*'x'"),
    ('pointcloud', pcd('ascii', -2), r'a\.pcd: WIDTH is "-2", not a whole number'),
    ('rtabmap', then(write_rtabmap, other_database), r'rtabmap\.db is not a database of RTAB-Map'),
    ('rtabmap', then(write_rtabmap, lambda folder: (folder / 'rtabmap_cloud.ply').unlink()),
     r'no cloud of rtabmap-export; expected \*_cloud\.ply'),
]  # fmt: skip


@needs('torch', 'open3d', 'h5py')
@pytest.mark.parametrize('row', range(len(REFUSED)), ids=lambda row: REFUSED[row][2])
def test_files_that_do_not_fit_are_named(tmp_path, row):
    method, write, message = REFUSED[row]
    write(tmp_path)
    with pytest.raises(OsmabenchError, match=message):
        import_map(method, tmp_path, OPTIONS)


def test_labels_of_which_nobody_knows_the_meaning_are_refused(tmp_path):
    write_cloud(tmp_path / 'a.ply', CHAIR, label=np.ones(40, np.int32))
    with pytest.raises(MapError, match='their meaning is unknown; give a label set'):
        import_map('pointcloud', tmp_path)


def test_more_objects_than_a_map_may_have_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(assembly, 'MAX_NODES', 30)
    write_cloud(tmp_path / 'a.ply', CHAIR, instance=np.arange(1, 41, dtype=np.int32), **gray(40))
    with pytest.raises(MapError, match='40 objects; a map has at most 30'):
        import_map('pointcloud', tmp_path)


@pytest.mark.parametrize('method', list_importers())
@pytest.mark.parametrize('path', ['a\0b', '/dev/zero', 'loop', '.', 'nothing'])
def test_a_path_without_a_map_is_named(tmp_path, monkeypatch, method, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'loop').symlink_to('loop')
    with pytest.raises(OsmabenchError) as caught:
        import_map(method, Path(path))
    assert path in str(caught.value) or '\\x00' in str(caught.value)
    assert len(str(caught.value)) < 1500


def external(folder, file):
    outside = [(str(folder / 'secret.bin'), 0, h5py.h5f.UNLIMITED)]
    file.create_dataset('pc_points', (3, 3), np.float32, external=outside)


def linked(folder, file):
    file['pc_points'] = h5py.ExternalLink(str(folder / 'secret.h5'), 'pc_points')


def empty_giant(folder, file):
    file.create_dataset('pc_points', (600_000_000, 3), np.float32, chunks=(1000, 3))


def bomb(folder, file):
    zeros = np.zeros((3_000_000, 3), np.float32)
    file.create_dataset('pc_points', data=zeros, compression='gzip')


@needs('h5py')
@pytest.mark.parametrize(
    ('make', 'text'),
    [
        (external, 'are in other files'),
        (linked, 'a link'),
        (empty_giant, 'MiB of memory'),
        (bomb, 'MiB of memory'),
    ],
)
def test_hostile_hdf5_is_refused(tmp_path, monkeypatch, make, text):
    with h5py.File(tmp_path / 'secret.h5', 'w') as secret:
        secret['pc_points'] = np.ones((3, 3), np.float32)
    (tmp_path / 'secret.bin').write_bytes(bytes(36))
    write_conceptfusion(tmp_path)
    with h5py.File(tmp_path / 'pointclouds' / 'pc_points.h5', 'w') as file:
        make(tmp_path, file)
    monkeypatch.setenv(VARIABLE, '0.05')
    with pytest.raises((MapError, LimitError), match=text):
        import_map('conceptfusion', tmp_path)


def damaged(data, rng):
    """Cut data off, or change a few bytes, most of them where headers are."""
    if rng.random() < 0.25:
        return data[: rng.integers(0, len(data))]
    made = bytearray(data)
    end = len(made) if rng.random() < 0.4 else min(len(made), 400)
    for _ in range(rng.integers(1, 8)):
        made[rng.integers(0, end)] = rng.integers(0, 256)
    return bytes(made)


@needs('torch', 'open3d', 'h5py')
@pytest.mark.parametrize('form', FORMS)
def test_files_survive_as_a_map_and_damaged_ones_load_or_are_refused(tmp_path, form):
    method, write = FORMS[form]
    folder = tmp_path / 'in'
    write(folder)
    made = import_map(method, folder)
    assert_equal(unpack_map(pack_map(made)), made)
    files = sorted(path for path in folder.rglob('*') if path.is_file())
    rng, refused = np.random.default_rng(11), 0
    for _ in range(DAMAGES):
        copy = tmp_path / 'copy'
        shutil.copytree(folder, copy)
        file = copy / files[rng.integers(0, len(files))].relative_to(folder)
        file.write_bytes(damaged(file.read_bytes(), rng))
        try:
            import_map(method, copy)
        except OsmabenchError:
            refused += 1
        shutil.rmtree(copy)
    assert refused > 0
