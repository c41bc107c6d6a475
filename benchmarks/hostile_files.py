"""A small sound file of every kind that the package reads, and what reads it."""

from __future__ import annotations

import dataclasses
import json
import pickle
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test'))

from maps.importers import method_files
from maps.sample_maps import sample_map


@dataclasses.dataclass(frozen=True)
class Reader:
    """What is written into a folder of its own, and read from it."""

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], object]


READERS: dict[str, Reader] = {}
CLASSES = {'classes': [{'id': 1, 'name': 'chair'}, {'id': 2, 'name': 'wall', 'structure': True}]}


def _add(name: str, write: Callable[[Path], object], read: Callable[[Path], object]) -> None:
    READERS[name] = Reader(name, write, read)


# Configurations


def _write_config(folder: Path) -> None:
    from support.small_config import small_config

    (folder / 'run.yaml').write_text(yaml.safe_dump(small_config()))


def _read_config(folder: Path) -> object:
    from osmabench_ros.runs.config import load_config

    return load_config(str(folder / 'run.yaml'))


def _write_condition(folder: Path) -> None:
    from osmabench_ros.base.configuration import config_path

    text = config_path('conditions', 'dynamic.yaml').read_text()
    (folder / 'light.yaml').write_text(text)


def _read_condition(folder: Path) -> object:
    from osmabench_ros.simulation.conditions import load_condition

    return load_condition(str(folder / 'light.yaml'))


def _write_labels(folder: Path) -> None:
    (folder / 'labels.yaml').write_text('1: chair\n2: wall\n7: coffee table\n')


def _read_labels(folder: Path) -> object:
    from osmabench_ros.maps.labelling import read_label_file

    return read_label_file(folder / 'labels.yaml')


_add('configuration', _write_config, _read_config)
_add('condition', _write_condition, _read_condition)
_add('label_file', _write_labels, _read_labels)


# Scenes


def _write_scene_folder(folder: Path) -> None:
    from osmabench_ros.scenes.writing import write_scene_folder

    write_scene_folder(_scene(), folder / 'scene')


def _scene() -> Any:
    from support.small_scenes import room_scene

    return room_scene()


def _load_scene(pattern: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        from osmabench_ros.scenes.loading import load_scene

        return load_scene(str(next(iter(sorted(folder.glob(pattern))), folder / pattern)))

    return read


def _write_mesh(suffix: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        import trimesh
        from scenes.test_gazebo import COLLADA

        if suffix == 'dae':
            text = COLLADA.format(up='Z_UP').replace('../materials/', '')
            (folder / 'mesh.dae').write_text(text)
            _write_images(folder / 'textures')
            (folder / 'textures' / 'color.png').rename(folder / 'textures' / 'p.png')
            return
        box = trimesh.creation.box((1, 2, 3))
        if suffix in ('obj', 'stl', 'ply'):
            box.export(folder / f'mesh.{suffix}')
        else:
            trimesh.Scene([box]).export(folder / f'mesh.{suffix}')

    return write


def _read_mesh(suffix: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        from osmabench_ros.scenes.assets import load_meshes

        return load_meshes(folder / f'mesh.{suffix}')

    return read


def _write_urdf(folder: Path) -> None:
    _write_mesh('obj')(folder)
    (folder / 'door.urdf').write_text(
        '<robot name="door"><link name="frame"><visual><geometry><box size="1 2 3"/></geometry>'
        '</visual></link><link name="leaf"><visual><origin xyz="0 0 1" rpy="0 0 0.5"/><geometry>'
        '<mesh filename="mesh.obj" scale="1 1 1"/></geometry></visual></link>'
        '<joint name="hinge" type="revolute"><parent link="frame"/><child link="leaf"/>'
        '<origin xyz="1 0 0"/><axis xyz="0 0 1"/><limit lower="0" upper="2"/></joint></robot>'
    )


def _read_urdf(folder: Path) -> object:
    from osmabench_ros.scenes.habitat.articulated import load_urdf

    return load_urdf(folder / 'door.urdf', {'hinge': 0.3}, 'door', root=folder)


def _write_habitat(folder: Path) -> None:
    from osmabench_ros.scenes.writing import write_habitat_dataset

    write_habitat_dataset(_scene(), folder / 'data')


def _write_gazebo(folder: Path) -> None:
    _write_mesh('stl')(folder)
    geometry = '<mesh><uri>mesh.stl</uri></mesh>'
    (folder / 'room.world').write_text(
        '<sdf version="1.7"><world name="w"><light name="sun" type="directional"><pose>0 0 5 0 0 0'
        '</pose><diffuse>1 1 1 1</diffuse><direction>0 0 -1</direction></light>'
        '<model name="crate"><pose>1 0 0 0 0 0.5</pose><link name="l"><visual name="v"><geometry>'
        f'<box><size>1 2 4</size></box></geometry></visual><visual name="w"><geometry>{geometry}'
        '</geometry></visual></link></model></world></sdf>'
    )


def _read_gazebo(folder: Path) -> object:
    from osmabench_ros.scenes.worlds.gazebo import load_gazebo_world

    return load_gazebo_world(folder / 'room.world')


def _write_usd(folder: Path) -> None:
    from scenes.test_usd import QUAD, material, move, write_stage

    paint = material('paint', 'color3f inputs:diffuseColor = (0.2, 0.4, 0.6)')
    write_stage(
        folder,
        f'{paint}def Mesh "table" (prepend apiSchemas = ["MaterialBindingAPI"])\n{{\n{QUAD}'
        f'rel material:binding = </World/paint>\n{move(1, 0, 0.7)}}}\n'
        'def SphereLight "lamp"\n{\nfloat inputs:radius = 0.1\nfloat inputs:intensity = 50\n}\n',
    )


def _read_usd(folder: Path) -> object:
    from osmabench_ros.scenes.worlds.usd import load_usd_stage

    return load_usd_stage(folder / 'room.usda')


def _write_replica(folder: Path) -> None:
    from scenes.test_replica import Maker

    Maker().write(folder / 'room_9')


_add('scene_folder', _write_scene_folder, _load_scene('scene/scene.json'))
for _suffix in ('glb', 'obj', 'stl', 'ply', 'dae'):
    _add(f'mesh_{_suffix}', _write_mesh(_suffix), _read_mesh(_suffix))
_add('urdf', _write_urdf, _read_urdf)
_add('habitat', _write_habitat, _load_scene('data/*.scene_dataset_config.json'))
_add('gazebo', _write_gazebo, _read_gazebo)
_add('usd', _write_usd, _read_usd)
_add('replica', _write_replica, _load_scene('room_9'))


# Images and arrays


def _write_images(folder: Path) -> None:
    from PIL import Image

    folder.mkdir(exist_ok=True)

    colors = np.random.default_rng(0).integers(0, 256, (24, 32, 3)).astype(np.uint8)
    for suffix in ('jpg', 'png'):
        Image.fromarray(colors).save(folder / f'color.{suffix}')
    Image.fromarray(colors[..., 0].astype(np.uint16) * 100).save(folder / 'depth.png')


def _read_images(folder: Path) -> object:
    from osmabench_ros.sequences.layout import read_16_bit, read_color

    for suffix in ('jpg', 'png'):
        read_color(folder / f'color.{suffix}', 0)
    return read_16_bit(folder / 'depth.png', 0)


def _write_npy(folder: Path) -> None:
    np.save(folder / 'a.npy', np.arange(60.0).reshape(20, 3))


def _read_npy(folder: Path) -> object:
    from osmabench_ros.base.limits.arrays import read_npy
    from osmabench_ros.errors import MapError

    return read_npy(folder / 'a.npy', MapError)


def _write_npz(folder: Path) -> None:
    np.savez_compressed(folder / 'a.npz', a=np.arange(60.0), b=np.ones((2, 3), bool))


def _read_npz(folder: Path) -> object:
    from osmabench_ros.base.limits.arrays import read_npz
    from osmabench_ros.errors import MapError

    return read_npz(folder / 'a.npz', MapError)


_add('image', _write_images, _read_images)
_add('npy', _write_npy, _read_npy)
_add('npz', _write_npz, _read_npz)


# Maps


def _importer(method: str, inner: str = '') -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        from osmabench_ros.maps.importer import ImportOptions, import_map

        return import_map(method, folder / 'map' / inner, ImportOptions())

    return read


def _written_by(write: Callable[[Path], object], exists: bool = False) -> Callable[[Path], None]:
    def into(folder: Path) -> None:
        if exists:
            (folder / 'map').mkdir()
        write(folder / 'map')

    return into


def _write_dualmap(folder: Path) -> None:
    module = types.ModuleType('utils.object')
    kind = type('GlobalObject', (), {'__module__': 'utils.object'})
    vars(module)['GlobalObject'] = kind
    sys.modules |= {'utils': types.ModuleType('utils'), 'utils.object': module}
    folder.mkdir()
    for number in (2, 5):
        item: Any = kind()
        item.__dict__ |= {
            'uid': f'object {number}',
            'pcd_points': method_files.CHAIR.tolist(),
            'pcd_colors': np.full((40, 3), 0.25).tolist(),
            'clip_ft': method_files.CLIP[0, :64].tolist(),
            'class_id': number,
        }
        (folder / f'{number}.pkl').write_bytes(pickle.dumps(item))
    (folder / 'class_names.json').write_text('["wall", "floor", "chair"]')


def _write_openmask3d(folder: Path) -> None:
    import torch

    folder.mkdir()
    method_files.write_cloud(folder / 'scene.ply', method_files.CHAIR, **method_files.gray(40))
    torch.save(np.arange(80).reshape(40, 2) % 3 == 0, folder / 'scene_masks.pt')
    np.save(folder / 'scene_openmask3d_features.npy', method_files.CLIP[:2])


def _write_conceptfusion(folder: Path) -> None:
    from maps.importers.test_conceptfusion import EMBEDDINGS, write

    points = method_files.CHAIR.astype(np.float32)
    write(folder, points=points, embeddings=EMBEDDINGS, colors=np.ones_like(points))


def _write_ovo(folder: Path) -> None:
    from maps.importers.test_ovo import write

    write(folder)


def _write_openfusion(folder: Path) -> None:
    from maps.importers.test_openfusion import write

    write(folder / 'room.npz')


def _write_openlex3d(folder: Path) -> None:
    from maps.importers.test_openlex3d import write

    write(folder)


def _write_pointcloud(folder: Path) -> None:
    one = np.ones(40, np.int32)
    method_files.write_cloud(
        folder / 'cloud.ply', method_files.CHAIR, instance=one, label=one, **method_files.gray(40)
    )
    (folder / 'classes.json').write_text(json.dumps(CLASSES))


def _write_pcd(folder: Path) -> None:
    import open3d

    folder.mkdir()
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(method_files.CHAIR))
    open3d.io.write_point_cloud(str(folder / 'cloud.pcd'), cloud)


def _write_graph(suffix: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        from maps.importers.test_hydra import graph

        folder.mkdir()
        if suffix == 'bin':
            (folder / 'graph.bin').write_bytes(bytes(graph().to_binary(True)))
        else:
            graph().save(str(folder / f'graph.{suffix}'))

    return write


_add('conceptgraphs', _written_by(method_files.write_conceptgraphs), _importer('conceptgraphs'))
_add('ali_dev', _written_by(method_files.write_ali_dev, True), _importer('conceptgraphs'))
_add('bbq', _written_by(method_files.write_bbq), _importer('bbq'))
_add('dualmap', _written_by(_write_dualmap), _importer('dualmap'))
_add('hovsg_graph', _written_by(method_files.write_hovsg_graph), _importer('hovsg'))
_add('hovsg_flat', _written_by(method_files.write_hovsg_flat), _importer('hovsg'))
_add('openscene', _written_by(method_files.write_openscene), _importer('openscene'))
_add('openmask3d', _written_by(_write_openmask3d), _importer('openmask3d'))
_add('conceptfusion_hdf5', _written_by(_write_conceptfusion), _importer('conceptfusion'))
_add('ovo', _written_by(_write_ovo), _importer('ovo'))
_add('openfusion', _written_by(_write_openfusion, True), _importer('openfusion'))
_add('openlex3d', _written_by(_write_openlex3d), _importer('openlex3d'))
_add('pointcloud_ply', _written_by(_write_pointcloud), _importer('pointcloud'))
_add('pointcloud_pcd', _written_by(_write_pcd), _importer('pointcloud'))
_add('hydra_json', _written_by(_write_graph('json')), _importer('hydra', 'graph.json'))
_add('hydra_binary', _written_by(_write_graph('bin')), _importer('hydra', 'graph.bin'))
_add('khronos', _written_by(_write_graph('sparkdsg')), _importer('khronos', 'graph.sparkdsg'))


def _write_map(folder: Path) -> None:
    from osmabench_ros.maps.disk.storage import write_map

    write_map(sample_map(), folder / 'map')


def _read_map(folder: Path) -> object:
    from osmabench_ros.maps.disk.storage import faults_of_directory, read_map

    faults_of_directory(folder / 'map')
    return read_map(folder / 'map')


def _write_archive(folder: Path) -> None:
    from osmabench_ros.maps.disk.storage import pack_map

    (folder / 'map.zip').write_bytes(pack_map(sample_map()))


def _read_archive(folder: Path) -> object:
    from osmabench_ros.maps.disk.storage import unpack_map

    return unpack_map((folder / 'map.zip').read_bytes())


_add('map_folder', _write_map, _read_map)
_add('map_archive', _write_archive, _read_archive)


# Bags and sequences


def _write_mcap(compression: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        from sequences.test_mcap_recording import BULK, MARK, recording, serialized

        from osmabench_ros.sequences.bags.recording_report import Compression

        made = recording(folder / 'bag', compression=Compression(compression))
        for index in range(20):
            made.write(BULK, 1000 + index, 500 + index, serialized(index))
            made.write(MARK, 1000 + index, 500 + index, serialized(index))
        made.close()

    return write


def _write_sqlite(folder: Path) -> None:
    from rosbags.rosbag2 import StoragePlugin
    from support.bag_files import write_bag

    write_bag(folder / 'bag', StoragePlugin.SQLITE3)


def _read_bag(folder: Path) -> object:
    from osmabench_ros.sequences.bags.bag import open_bag

    with open_bag(folder / 'bag') as bag:
        return [message.deserialise() for message in bag.messages()]


def _write_sequence(form: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        from support.recorded_frames import FRAMES, INFO

        from osmabench_ros.sequences import layout
        from osmabench_ros.sequences.writer import open_writer

        writer = open_writer(folder / 'room', getattr(layout, form), INFO)
        for frame in FRAMES:
            writer.write(frame)
        writer.close()

    return write


def _read_sequence(folder: Path) -> object:
    from osmabench_ros.sequences.recorded import open_sequence

    return list(open_sequence(folder / 'room'))


def _write_truth(folder: Path) -> None:
    from osmabench_ros.geometry.intrinsics import Intrinsics
    from osmabench_ros.geometry.pose import Pose
    from osmabench_ros.semantics.cloud import LabelledCloud
    from osmabench_ros.sequences.ground_truth import GroundTruth, write_ground_truth

    made = sample_map()
    assert made.label_set is not None
    rng = np.random.default_rng(0)
    cloud = LabelledCloud(
        rng.random((9, 3)).astype(np.float32),
        rng.integers(1, 3, 9).astype(np.int32),
        rng.integers(0, 4, 9).astype(np.int32),
        rng.random((9, 3)).astype(np.float32),
    )
    camera = Intrinsics.from_hfov(8, 6, 1.5)
    poses = (Pose.identity(),)
    truth = GroundTruth('a', 's', made.label_set, made.graph, cloud, cloud, poses, camera, (1,))
    write_ground_truth(truth, folder / 'truth')


def _read_truth(folder: Path) -> object:
    from osmabench_ros.sequences.ground_truth import read_ground_truth

    return read_ground_truth(folder / 'truth')


for _compression in ('none', 'zstd', 'lz4'):
    _add(f'mcap_{_compression}', _write_mcap(_compression), _read_bag)
_add('sqlite_bag', _write_sqlite, _read_bag)
_add('sequence_osma', _write_sequence('OSMA'), _read_sequence)
_add('sequence_scannet', _write_sequence('SCANNET'), _read_sequence)
_add('ground_truth', _write_truth, _read_truth)


# Figures, questions, trajectories


def _write_confusions(folder: Path) -> None:
    from osmabench_ros.metrics.confusion import ConfusionMatrix, write_confusions

    counts, labels = np.arange(9).reshape(3, 3), np.array([1, 2, 3])
    write_confusions({'room': ConfusionMatrix(counts, labels)}, folder / 'all.npz')
    published = {'conf_matrix': counts, 'labels': labels.tolist()}
    (folder / 'office_conf_matrix.pkl').write_bytes(pickle.dumps(published))


def _read_confusions(folder: Path) -> object:
    from osmabench_ros.metrics.confusion import read_confusion_sets

    return read_confusion_sets([folder / 'all.npz', folder / 'office_conf_matrix.pkl'])


def _write_tiers(folder: Path) -> None:
    from osmabench_ros.metrics.tiers import TieredObject, tiers_by_id, write_tiers

    item = TieredObject(1, ('chair',), (), ('stool',), (2,))
    write_tiers(tiers_by_id([item]), folder / 'tiers.json')


def _read_tiers(folder: Path) -> object:
    from osmabench_ros.metrics.tiers import read_tiers

    return read_tiers(folder / 'tiers.json')


def _write_questions(folder: Path) -> None:
    from osmabench_ros.vqa.question_files import write_records
    from osmabench_ros.vqa.questions import Answer, AnswerType, Evidence, Question, Verdict

    question = Question(
        'q-1', 'exact_questions', 'room', 'Measurement', 'How many?', AnswerType.INTEGER, 3, 0.5,
        Evidence((4, 5), (10,)), {'seed': '1'},
    )  # fmt: skip
    write_records(folder / 'questions.jsonl', [question])
    write_records(folder / 'answers.jsonl', [Answer('q-1', 3, 'rule', (4,), 'note')])
    write_records(folder / 'verdicts.jsonl', [Verdict('q-1', True, 'judge', reason='equal')])


def _read_questions(folder: Path) -> object:
    from osmabench_ros.vqa.question_files import read_records
    from osmabench_ros.vqa.questions import Answer, Question, Verdict

    read_records(folder / 'questions.jsonl', Question)
    read_records(folder / 'answers.jsonl', Answer)
    return read_records(folder / 'verdicts.jsonl', Verdict)


def _write_published(folder: Path) -> None:
    import gzip

    row = {
        'question': 'Is there a chair?', 'answer': 'Yes', 'scene_graph_answer': 'Yes',
        'category': 'Binary Existence-Based', 'similar': 'Yes', 'scene': 'a', 'condition': 'b',
    }  # fmt: skip
    text = f'{json.dumps(row)}\n'.encode() * 4
    (folder / 'a.jsonl').write_bytes(text)
    (folder / 'b.jsonl.gz').write_bytes(gzip.compress(text))


def _read_published(folder: Path) -> object:
    from osmabench_ros.vqa.published import read_saved_answers

    return read_saved_answers([folder / 'a.jsonl', folder / 'b.jsonl.gz'])


def _write_trajectory(folder: Path) -> None:
    lines = [f'{1700000000 + i}.5 {i} 0.25 1 0 0 0 1' for i in range(20)]
    (folder / 'path.tum').write_text('# stamp x y z qx qy qz qw\n' + '\n'.join(lines) + '\n')


def _read_trajectory(folder: Path) -> object:
    from osmabench_ros.runs.prepare.recorded_trajectories import read_trajectory

    return read_trajectory(str(folder / 'path.tum'))


def _write_report(folder: Path) -> None:
    from osmabench_ros.base.files import write_json

    row = {'suite': 'a', 'metric': 'b', 'value': 0.5, 'labels': {'mode': 'strict'}}
    write_json(folder / 'report.json', {'name': 'x', 'records': [row] * 3})


def _read_report(folder: Path) -> object:
    from osmabench_ros.base.files import read_json

    return read_json(folder / 'report.json')


_add('confusions', _write_confusions, _read_confusions)
_add('tiers', _write_tiers, _read_tiers)
_add('questions', _write_questions, _read_questions)
_add('published_answers', _write_published, _read_published)
_add('trajectory', _write_trajectory, _read_trajectory)
_add('report', _write_report, _read_report)
