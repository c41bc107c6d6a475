"""A look-alike of a scene of Replica: quads with object ids, colours in a separate mesh."""

import json

import numpy as np
import pytest

from osmabench_ros.errors import SceneError
from osmabench_ros.geometry.point_files import write_ply
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.visibility import sample_surface
from osmabench_ros.semantics.labels import UNLABELLED

FLOOR, SOFA, BLUR = 0, 7, 9
BOXES = {
    FLOOR: ((-2, -2, -0.1), (2, 2, 0)),
    SOFA: ((-1, 0.5, 0), (1, 1.5, 0.8)),
    BLUR: ((1.5, -1.5, 0.3), (1.7, -1.2, 0.5)),
}
PAINT = {FLOOR: (120, 120, 120), SOFA: (250, 10, 10), BLUR: (10, 10, 250)}
INFO = {
    'id': 'room_9',
    'classes': [
        {'id': 0, 'name': 'undefined'}, {'id': 40, 'name': 'floor'}, {'id': 76, 'name': 'sofa'},
    ],
    'objects': [
        {'id': FLOOR, 'class_id': 40, 'class_name': 'floor', 'oriented_bbox': {}},
        {'id': SOFA, 'class_id': 76, 'class_name': 'sofa', 'oriented_bbox': {}},
    ],
}  # fmt: skip
QUADS = np.array([(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2),
                  (1, 3, 7, 5)])  # fmt: skip


def write_room(folder, order='<', corners=4):
    (folder / 'habitat').mkdir(parents=True)
    points, faces, owners = [], [], []
    for owner, (low, high) in BOXES.items():
        faces.append(QUADS + 8 * len(points))
        points.append([[(low, high)[b >> a & 1][a] for a in range(3)] for b in range(8)])
        owners += [owner] * len(QUADS)
    points, faces = np.concatenate(points), np.concatenate(faces)
    if corners == 3:
        faces = np.concatenate([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
        owners = owners * 2
    colors = np.repeat([PAINT[owner] for owner in BOXES], 8, axis=0).astype(np.uint8)
    with (folder / 'mesh.ply').open('wb') as stream:
        columns = dict(zip('xyz', points.astype(np.float32).T, strict=True))
        columns |= dict(zip(('red', 'green', 'blue'), colors.T, strict=True))
        write_ply(stream, columns)
    name = {'<': 'binary_little_endian', '>': 'binary_big_endian'}[order]
    header = (
        f'ply\nformat {name} 1.0\ncomment x\nelement vertex {len(points)}\n'
        'property float x\nproperty float y\nproperty float z\n'
        f'element face {len(faces)}\nproperty list uchar int vertex_indices\n'
        'property int object_id\nend_header\n'
    )
    kind = np.dtype([('n', 'u1'), ('i', f'{order}i4', (corners,)), ('o', f'{order}i4')])
    rows = np.zeros(len(faces), kind)
    rows['n'], rows['i'], rows['o'] = corners, faces, owners
    data = points.astype(f'{order}f4').tobytes() + rows.tobytes()
    (folder / 'habitat/mesh_semantic.ply').write_bytes(header.encode() + data)
    (folder / 'habitat/info_semantic.json').write_text(json.dumps(INFO))
    return folder


@pytest.mark.filterwarnings('ignore:.*below a camera')
@pytest.mark.parametrize('how', [{}, {'order': '>'}, {'corners': 3}])
def test_a_scene_is_read_with_its_classes_ids_boxes_and_colours(how, tmp_path):
    scene = load_scene(str(write_room(tmp_path / 'room_9', **how)))
    assert (scene.dataset, scene.name) == ('replica', 'room_9')
    assert scene.by_instance.keys() == {1, 8, 10}
    sofa, blur = scene.by_instance[8], scene.by_instance[10]
    assert (scene.class_name(sofa), sofa.class_id, blur.class_id) == ('sofa', 76, UNLABELLED)
    assert scene.label_set.by_id[40].structure
    for owner, corners in BOXES.items():
        box = scene.by_instance[owner + 1].box
        np.testing.assert_allclose([box.minimum, box.maximum], corners, atol=1e-6)
    (mesh,) = sofa.meshes
    np.testing.assert_allclose(mesh.material.base_color, np.array(PAINT[SOFA]) / 255, atol=1e-6)
    # Whole surfaces, with normals: 2 x (2 x 1 + 2 x 0.8 + 1 x 0.8) m2 of sofa.
    cloud = sample_surface(scene, 1000.0, 0)
    assert (cloud.instances == 8).sum() == pytest.approx(8800, abs=2)
    relations = {
        (edge.source, edge.type, edge.target) for edge in build_ground_truth_graph(scene).edges
    }
    assert (8, 'on', 1) in relations
    assert load_scene(str(tmp_path / 'room_9'), scene='room_9').source_sha256
    with pytest.raises(SceneError, match='holds the scene "room_9"'):
        load_scene(str(tmp_path / 'room_9'), scene='room_1')


def edited(path, old, new):
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


@pytest.mark.parametrize(('file', 'old', 'new', 'fault'), [
    ('habitat/mesh_semantic.ply', b'object_id', b'other_key', 'an object_id'),
    ('habitat/mesh_semantic.ply', b'element face 18', b'element face 19', 'unexpected length'),
    ('habitat/mesh_semantic.ply', b'binary_little_endian', b'ascii', 'cannot be read as PLY'),
    ('habitat/mesh_semantic.ply', b'property int object_id', b'property half object_id',
     r"KeyError\('half'\)"),
    ('habitat/mesh_semantic.ply', b'float z', b'float w', 'no field of name z'),
    ('habitat/info_semantic.json', b'"classes"', b'"klasses"', 'classes'),
    ('habitat/info_semantic.json', b'"id": 7,', b'"id": 0,', 'an id is there twice'),
    ('mesh.ply', b'red', b'rot', 'no red'),
])  # fmt: skip
def test_what_is_malformed_is_named(file, old, new, fault, tmp_path):
    folder = write_room(tmp_path / 'room_9')
    edited(folder / file, old, new)
    with pytest.raises(SceneError, match=fault):
        load_scene(str(folder))


def test_faces_of_other_vertices_and_mixed_polygons_are_refused(tmp_path):
    folder = write_room(tmp_path / 'room_9')
    file = folder / 'habitat/mesh_semantic.ply'
    whole = file.read_bytes()
    file.write_bytes(whole[:-8] + np.array([99, BLUR], '<i4').tobytes())
    with pytest.raises(SceneError, match='a vertex that is not there'):
        load_scene(str(folder))
    file.write_bytes(whole[:-21] + b'\3' + whole[-20:])
    with pytest.raises(SceneError, match='all of one length'):
        load_scene(str(folder))
    (folder / 'mesh.ply').unlink()
    file.write_bytes(whole)
    with pytest.raises(SceneError, match=r'mesh\.ply does not exist'):
        load_scene(str(folder))
