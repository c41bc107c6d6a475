"""Writes small files of the mapping methods, for a chair and a table in a y-up world."""

import gzip
import json
import pickle
import sqlite3
import sys
import types
import uuid

import numpy as np

from osmabench_ros.geometry.point_files import write_ply

RANDOM = np.random.default_rng(7)
CHAIR = RANDOM.uniform([1, 0, 2], [1.5, 0.9, 2.5], (40, 3))
TABLE = RANDOM.uniform([3, 0, 2], [4.5, 0.7, 3.0], (60, 3))
CUP = CHAIR + np.array([2, 0.7, 0])
CLIP = RANDOM.normal(size=(3, 1024)).astype(np.float32)
CLIP /= np.linalg.norm(CLIP, axis=1, keepdims=True)
CLASSES = ['item', 'chair', 'table', 'wall']


def z_up(points):
    """Return Habitat's (x, y up, z) as (x, -z, y)."""
    return np.stack([points[:, 0], -points[:, 2], points[:, 1]], axis=1)


def corners_of(points):
    """Return what Open3D's AxisAlignedBoundingBox.get_box_points gives."""
    (x0, y0, z0), (x1, y1, z1) = points.min(axis=0), points.max(axis=0)
    return np.array([
        [x0, y0, z0], [x1, y0, z0], [x0, y1, z0], [x0, y0, z1],
        [x1, y1, z1], [x0, y1, z1], [x1, y0, z1], [x1, y1, z0],
    ])  # fmt: skip


def write_pickle(path, data):
    """Write a gzip pickle as ConceptGraphs and BBQ do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, 'wb') as stream:
        pickle.dump(data, stream)


def write_cloud(path, points, **columns):
    """Write a PLY file as Open3D does: doubles, and 8-bit colours if given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open('wb') as stream:
        write_ply(stream, {**{name: points[:, i] for i, name in enumerate('xyz')}, **columns})


def other_class(module, name):
    """Return a class that pickles under its name in another package."""
    kind = type(name, (), {'__module__': module, '__qualname__': name})
    sys.modules.setdefault(module.split('.')[0], types.ModuleType(module.split('.')[0]))
    setattr(sys.modules.setdefault(module, types.ModuleType(module)), name, kind)
    return kind


def omega_config():
    """Return an object that pickles as OmegaConf's DictConfig, with the names it uses."""
    config = other_class('omegaconf.dictconfig', 'DictConfig')()
    leaf = other_class('omegaconf.nodes', 'AnyNode')()
    metadata = other_class('omegaconf.base', 'ContainerMetadata')()
    leaf.__dict__.update(_val=0.025, _parent=config)
    config.__dict__.update(_content={'voxel': leaf}, _parent=None, _metadata=metadata)
    return config


def conceptgraphs_object(points, feature, class_id, seen):
    """Return an object as MapObjectList.to_serializable gives it."""
    return {
        'image_idx': list(range(seen)),
        'mask_idx': [0] * seen,
        'color_path': ['frame.jpg'] * seen,
        'class_name': ['item'] + [CLASSES[class_id]] * (seen - 1),
        'class_id': [0] + [class_id] * (seen - 1),
        'mask': [np.ones((48, 64), bool)] * seen,
        'xyxy': [np.zeros(4, np.float32)] * seen,
        'conf': [np.float32(0.5)] * seen,
        'n_points': [len(points)] * seen,
        'contain_number': [None] * seen,
        'inst_color': np.array([0.1, 0.2, 0.3]),
        'is_background': False,
        'num_detections': seen,
        'clip_ft': CLIP[feature],
        'text_ft': CLIP[feature],
        'pcd_np': points,
        'bbox_np': corners_of(points),
        'pcd_color_np': np.full(points.shape, 0.5),
    }


def write_conceptgraphs(scene, graph=True):
    """Write branch main: four objects, of which 1 is pruned, and two that are background."""
    objects = [
        conceptgraphs_object(CHAIR, 0, 1, 5),
        conceptgraphs_object(CHAIR + 5, 1, 3, 2),
        conceptgraphs_object(TABLE, 1, 2, 4),
        conceptgraphs_object(CUP, 2, 1, 3),
    ]
    wall = conceptgraphs_object(TABLE * [3, 4, 0.1], 2, 3, 9) | {'is_background': True}
    results = {
        'objects': objects,
        'bg_objects': [wall],
        'cfg': omega_config(),
        'class_names': CLASSES,
        'class_colors': {'0': [0.0, 0.0, 0.0]},
    }
    name = 'full_pcd_none_overlap_maskconf0.95_simsum1.2_dbscan.1_merge20_masksub_post.pkl.gz'
    write_pickle(scene / 'pcd_saves' / name, results)
    if not graph:
        return
    nodes = [
        (0, 'chair', ['seat', 'chair'], 'a wooden chair', CHAIR),
        (2, 'table', ['desk'], 'a low table', TABLE),
        (3, 'cup', ['mug'], 'a red cup', CUP),
    ]
    listed = [
        {
            'id': node_id,
            'bbox_extent': np.round(points.max(0) - points.min(0), 1).tolist(),
            'bbox_center': np.round((points.max(0) + points.min(0)) / 2, 1).tolist(),
            'possible_tags': tags,
            'object_tag': tag,
            'caption': caption,
        }
        for node_id, tag, tags, caption, points in nodes
    ]
    relations = [
        _relation(2, 1, 'a on b', 'it stands on the table'),
        _relation(0, 2, 'b in a', 'inside'),
        _relation(0, 1, 'none of these', 'apart'),
        _relation(1, 0, 'FAIL', 'FAIL'),
    ]
    (scene / 'sg_cache').mkdir(parents=True)
    (scene / 'sg_cache' / 'scene_graph.json').write_text(json.dumps(listed, indent=4))
    (scene / 'sg_cache' / 'cfslam_object_relations.json').write_text(json.dumps(relations))


def _relation(first, second, relation, reason):
    box = {'bbox_extent': [0.1, 0.1, 0.1], 'bbox_center': [0.0, 0.0, 0.0], 'object_tag': 'x'}
    return {
        'object1': {'id': first, **box},
        'object2': {'id': second, **box},
        'object_relation': relation,
        'reason': reason,
    }


def write_ali_dev(folder, edge_file=True):
    """Write branch ali-dev: numbers of objects (curr_obj_num) that are not their places."""
    objects = []
    for points, number, class_id, caption in ((CHAIR, 11, 1, 'a wooden chair'), (TABLE, 4, 2, '')):
        item = conceptgraphs_object(points, class_id - 1, class_id, 4)
        del item['text_ft']
        item |= {
            'id': uuid.UUID(int=number),
            'curr_obj_num': number,
            'class_name': CLASSES[class_id],
            'captions': [],
            'consolidated_caption': caption,
        }
        objects.append(item)
    edges = [{'obj1_index': 0, 'obj2_index': 1, 'rel_type': 'on top of', 'num_detections': 3}]
    results = {
        'objects': objects,
        'cfg': {'dataset_root': '/data', 'voxel': 0.01},
        'class_names': CLASSES,
        'class_colors': {},
        'edges': {'edges': edges, 'objects': []},
    }
    write_pickle(folder / 'pcd_run.pkl.gz', results)
    described = {
        f'object_{i + 1}': {
            'id': item['curr_obj_num'],
            'object_tag': item['class_name'],
            'object_caption': item['consolidated_caption'] or 'a low table',
            'bbox_extent': [0.5, 0.9, 0.5],
            'bbox_center': [1.25, 0.45, 2.25],
            'bbox_volume': 0.22,
        }
        for i, item in enumerate(objects)
    }
    (folder / 'obj_json_run.json').write_text(json.dumps(described, indent=2))
    if edge_file:
        edge = {
            'edge_id': 0,
            'edge_description': 'chair on top of table',
            'num_detections': 3,
            'object_1_id': 11,
            'object_1_tag': 'chair',
            'object_2_id': 4,
            'object_2_tag': 'table',
            'relationship': 'on top of',
        }
        (folder / 'edge_json_run.json').write_text(json.dumps({'edge_0': edge}))


def write_bbq(folder, features=False, nodes=True):
    """Write a BBQ map; OSMa-Bench adds `clip_ft`, a tensor of shape (1, 512)."""
    objects = []
    for i, points in enumerate((CHAIR, TABLE)):
        item = {
            'id': [3, 8, 9][: i + 2],
            'num_detections': 3,
            'color_image_idx': 3,
            'mask': np.ones((48, 64), bool),
            'descriptor': CLIP[i : i + 1, :384],
            'pcd_np': points,
            'bbox_np': corners_of(points),
            'pcd_color_np': np.tile(RANDOM.random(3), (len(points), 1)),
        }
        if features:
            import torch

            item['clip_ft'] = torch.from_numpy(CLIP[i : i + 1, :512])
        objects.append(item)
    write_pickle(folder / 'baseline_apt_0.pkl.gz', {'objects': objects})
    write_pickle(folder / 'meta.pkl.gz', {'config': {'dataset': {'name': 'Generated'}}})
    if nodes:
        listed = [
            {'id': 0, 'bbox_extent': [0.5, 0.9, 0.5], 'bbox_center': [1.2, 0.4, 2.2],
             'description': 'a wooden chair'},
            {'id': 1, 'bbox_extent': [1.5, 0.7, 1.0], 'bbox_center': [3.8, 0.4, 2.5],
             'description': 'a low table'},
        ]  # fmt: skip
        (folder / 'baseline_apt_0.json').write_text(json.dumps(listed))


def write_openscene(folder):
    """Write what OSMa-Bench's fork writes; return the features, zero for points never seen."""
    points = np.concatenate([CHAIR, TABLE])
    features = RANDOM.normal(size=(len(points), 768)).astype(np.float16)
    features[::10] = 0
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / 'predictions.npy', features)
    write_cloud(folder / 'gt.ply', points, **gray(len(points)))
    return features


def gray(count):
    """Return 8-bit colour columns."""
    return {name: np.full(count, 90, np.uint8) for name in ('red', 'green', 'blue')}


def write_hovsg_graph(folder):
    """Write floors, rooms and objects, named f, f_r and f_r_o."""
    both = np.concatenate([CHAIR, TABLE])
    layers = {
        'floors': [('0', both, {'floor_id': '0', 'name': 'floor_0', 'rooms': ['0_0'],
                                'floor_height': 2.6, 'floor_zero_level': 0.0})],
        'rooms': [('0_0', both, {'room_id': '0_0', 'name': 'kitchen', 'floor_id': '0',
                                 'objects': ['0_0_0', '0_0_1'], 'room_height': 2.5,
                                 'room_zero_level': 0.1, 'embeddings': [CLIP[0].tolist()],
                                 'represent_images': [4, 9]})],
        'objects': [
            ('0_0_0', CHAIR, {'object_id': '0_0_0', 'room_id': '0_0', 'name': 'chair',
                              'embedding': CLIP[0].tolist()}),
            ('0_0_1', TABLE, {'object_id': '0_0_1', 'room_id': '0_0', 'name': 'table',
                              'embedding': ''}),
        ],
    }  # fmt: skip
    for layer, items in layers.items():
        for name, points, data in items:
            write_cloud(folder / 'graph' / layer / f'{name}.ply', points, **gray(len(points)))
            data['vertices'] = corners_of(points).tolist()
            (folder / 'graph' / layer / f'{name}.json').write_text(json.dumps(data))


def write_hovsg_flat(folder):
    """Write the segments and their features before a graph is built."""
    import torch

    for i, points in enumerate((CHAIR, TABLE)):
        write_cloud(folder / 'objects' / f'pcd_{i}.ply', points, **gray(len(points)))
    write_cloud(folder / 'masked_pcd.ply', np.concatenate([CHAIR, TABLE]))
    torch.save(torch.from_numpy(CLIP[:2]), folder / 'mask_feats.pt')


def write_rtabmap(folder, points=CHAIR, **columns):
    """Write the files of rtabmap-export and a database of five nodes; two of them closures."""
    folder.mkdir(parents=True, exist_ok=True)
    write_cloud(folder / 'rtabmap_cloud.ply', points, **(columns or gray(len(points))))
    # The optical frame of a robot at the origin, and half a metre further on.
    turn = '-0.5 0.5 -0.5 0.5'
    (folder / 'rtabmap_camera_poses.txt').write_text(
        f'#timestamp x y z qx qy qz qw\n1.000000 0 0 0 {turn}\n1.500000 0.5 0 0 {turn}\n'
    )
    with sqlite3.connect(folder / 'rtabmap.db') as database:
        database.execute('CREATE TABLE Admin (version TEXT)')
        database.execute("INSERT INTO Admin VALUES ('0.23.8')")
        database.execute('CREATE TABLE Node (id INTEGER, map_id INTEGER, stamp FLOAT)')
        database.executemany('INSERT INTO Node VALUES (?, 0, 1.0)', [(i,) for i in range(1, 6)])
        database.execute('CREATE TABLE Link (from_id INTEGER, to_id INTEGER, type INTEGER)')
        links = [(i, i + 1, 0) for i in range(1, 5)] + [(4, 1, 1), (5, 2, 2)]
        both = [*links, *((end, start, kind) for start, end, kind in links)]
        database.executemany('INSERT INTO Link VALUES (?, ?, ?)', both)
    database.close()


BOTH = np.concatenate([CHAIR, TABLE])
INDEX = np.repeat([2, -1, 0, 1], 10)
OWNERS = np.repeat([-1, 4, 9, 4], 10)
EMBEDDINGS = np.tile(CLIP, (14, 1))[: len(CHAIR)].astype(np.float16)
KEYS = np.zeros((5, 16), np.int64)
KEYS[1, :10], KEYS[3, 4:14] = 1, 2
COORDINATES = np.zeros((5, 16, 3), np.float32)
COORDINATES[1, :10], COORDINATES[3, 4:14] = CHAIR[:10], CHAIR[10:20]
# The whole chair, a part of it, the cup; no mask covers the rest.
MASKS = np.zeros((80, 3), np.float16)
MASKS[:40, 0] = MASKS[10:25, 1] = MASKS[45:70, 2] = 1


def write_fused_openscene(folder, cloud='scene.pth'):
    """Write fused features of some points; return what marks these."""
    import torch

    mask = np.random.default_rng(2).random(len(BOTH)) < 0.7
    features = np.random.default_rng(2).normal(size=(len(BOTH), 768)).astype(np.float16)
    folder.mkdir(parents=True, exist_ok=True)
    fused = {'feat': torch.from_numpy(features[mask]), 'mask_full': torch.from_numpy(mask)}
    torch.save(fused, folder / 'scene_0.pt')
    if cloud.endswith('.pth'):
        colors = np.full(BOTH.shape, -1.0, np.float32)
        torch.save((BOTH, colors, np.zeros(len(BOTH))), folder / cloud)
    else:
        write_cloud(folder / cloud, BOTH)
    return np.where(mask[:, None], features, 0)


def write_conceptfusion(folder, **changes):
    """Write parts as gradslam's save_pointcloud_to_h5 does; None leaves one out."""
    import h5py

    parts = {'points': CHAIR.astype(np.float32), 'embeddings': EMBEDDINGS, **changes}
    (folder / 'pointclouds').mkdir(parents=True, exist_ok=True)
    for name, array in parts.items():
        with h5py.File(folder / 'pointclouds' / f'pc_{name}.h5', 'w') as file:
            file.create_dataset(f'pc_{name}', data=array)


def write_openfusion(folder, **changes):
    """Write the .npz of VLState.save: Open3D's voxel blocks and the embeddings of places."""
    arrays = {
        'intrinsic': np.eye(3),
        'extrinsic': np.tile(np.eye(4), (7, 1, 1)),
        'emb_keys': KEYS,
        'emb_confs': np.full(KEYS.shape, 0.5, np.float32),
        'emb_coords': COORDINATES,
        'emb_dict': CLIP[:, :512],
        'emb_count': np.ones(3, np.float32),
        'voxel_size': np.array([5.0 / 512]),
    } | changes
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / 'room.npz', **{k: v for k, v in arrays.items() if v is not None})


def write_openlex3d(folder, index=INDEX, embeddings=CLIP):
    """Write a prediction as OpenLex3D's README asks for."""
    import open3d

    folder.mkdir(parents=True, exist_ok=True)
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(CHAIR))
    cloud.colors = open3d.utility.Vector3dVector(np.full(CHAIR.shape, 0.2))
    open3d.io.write_point_cloud(str(folder / 'point_cloud.pcd'), cloud)
    np.save(folder / 'index.npy', index)
    np.save(folder / 'embeddings.npy', embeddings)


def write_openmask3d(folder, features=True):
    """Write three masks, of which the last has no feature."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    torch.save(MASKS, folder / 'scene_masks.pt')
    write_cloud(folder / 'scene.ply', np.concatenate([CHAIR, CUP]), **gray(80))
    if features:
        vectors = CLIP[:3, :768].copy()
        vectors[2] = np.nan
        np.save(folder / 'scene_openmask3d_features.npy', vectors)


def write_ovo(folder, **changes):
    """Write ovo_map.ckpt as OVO does: a legacy torch file of two dictionaries."""
    import torch

    data = {
        'map_params': {
            'xyz': torch.from_numpy(CHAIR).float(),
            'obj_ids': torch.from_numpy(OWNERS),
            'ids': torch.arange(len(CHAIR)),
            'max_id': len(CHAIR),
            'color': torch.full((len(CHAIR), 3), 120, dtype=torch.uint8),
        },
        'ovo_map_params': {
            'ins_3d_ids': np.asarray([4, 9]),
            'ins3d_4_clip_feature': torch.from_numpy(CLIP[:1]),
            'ins3d_4_clip_feature_kf': 7,
            'ins3d_9_clip_feature': None,
            'ins3d_9_clip_feature_kf': None,
        },
    } | changes
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(data, folder / 'ovo_map.ckpt', _use_new_zipfile_serialization=False)


def write_dualmap(folder):
    """Write two objects as DualMap's save_to_disk does: pickles of its class GlobalObject."""
    kind = other_class('utils.object', 'GlobalObject')
    folder.mkdir(parents=True, exist_ok=True)
    for number, points in ((2, CHAIR), (5, TABLE)):
        item = kind()
        item.__dict__ |= {
            'uid': uuid.UUID(int=number),
            'pcd_points': points.tolist(),
            'pcd_colors': np.full(points.shape, 0.25).tolist(),
            'clip_ft': CLIP[number % 3, :512].tolist(),
            'class_id': number,
            'nav_goal': number == 5,
        }
        (folder / f'{item.uid}.pkl').write_bytes(pickle.dumps(item))


def write_pointcloud(folder):
    """Write a cloud of one instance."""
    write_cloud(folder / 'cloud.ply', CHAIR, instance=np.ones(40, np.int32), **gray(40))


# Method and writer of each form of files that is read; Hydra's are in its own test.
FORMS = {
    'conceptgraphs': ('conceptgraphs', write_conceptgraphs),
    'ali-dev': ('conceptgraphs', write_ali_dev),
    'bbq': ('bbq', write_bbq),
    'openscene': ('openscene', write_openscene),
    'fused openscene': ('openscene', write_fused_openscene),
    'hovsg': ('hovsg', write_hovsg_graph),
    'flat hovsg': ('hovsg', write_hovsg_flat),
    'openmask3d': ('openmask3d', write_openmask3d),
    'conceptfusion': ('conceptfusion', write_conceptfusion),
    'ovo': ('ovo', write_ovo),
    'openfusion': ('openfusion', write_openfusion),
    'openlex3d': ('openlex3d', write_openlex3d),
    'dualmap': ('dualmap', write_dualmap),
    'pointcloud': ('pointcloud', write_pointcloud),
    'rtabmap': ('rtabmap', write_rtabmap),
}
