"""Messages without ROS, and small bags of them as every version of rosbag2 writes them."""

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import asdict
from functools import cache

import numpy as np
import yaml
from rosbags import interfaces
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.standard_messages import list_fields, make_records
from osmabench_ros.maps.storage import pack_map
from support import TESTS

S = 10**9
BEACON = 'robot_msgs/msg/Beacon'
BEACON_TEXT = 'std_msgs/Header header\nuint32 number\nstring words\n'
NUMBERS, POSES, BEACONS = '/numbers', '/poses', '/beacons'
START_NS = 1_700_000_000 * S
STEP_NS = 10_000_000
FOREIGN = {
    BEACON: BEACON_TEXT,
    'tf2_msgs/msg/TFMessage': 'geometry_msgs/TransformStamped[] transforms',
    'hydra_msgs/msg/DsgUpdate': (
        'std_msgs/Header header\nuint8[] layer_contents\nuint64[] deleted_nodes\n'
        'uint64[] deleted_edges\nbool full_update\nint64 sequence_number'
    ),
    'vision_msgs/msg/ObjectHypothesis': 'string class_id\nfloat64 score',
    'vision_msgs/msg/ObjectHypothesisWithPose': (
        'vision_msgs/ObjectHypothesis hypothesis\ngeometry_msgs/PoseWithCovariance pose'
    ),
    'vision_msgs/msg/BoundingBox3D': 'geometry_msgs/Pose center\ngeometry_msgs/Vector3 size',
    'vision_msgs/msg/Detection3D': (
        'std_msgs/Header header\nvision_msgs/ObjectHypothesisWithPose[] results\n'
        'vision_msgs/BoundingBox3D bbox\nstring id'
    ),
    'vision_msgs/msg/Detection3DArray': (
        'std_msgs/Header header\nvision_msgs/Detection3D[] detections'
    ),
    'vision_msgs/msg/VisionClass': 'uint16 class_id\nstring class_name',
    'vision_msgs/msg/LabelInfo': (
        'std_msgs/Header header\nvision_msgs/VisionClass[] class_map\nfloat32 threshold'
    ),
}


@cache
def typestore():
    """Return the types of Humble, of this package and of some others."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    types = {}
    for name, text in FOREIGN.items():
        types.update(get_types_from_msg(text, name))
    for file in sorted((TESTS.parent / 'msg').glob('*.msg')):
        types.update(get_types_from_msg(file.read_text(), f'osmabench_ros/msg/{file.stem}'))
    known = {name: fields for name, fields in types.items() if name not in store.types}
    store.register(known)
    return store


def make(message_type, **fields):
    """Return a message; a field within may be a dict, one that is not named is as ROS has it."""
    package, _, name = message_type.partition('/')
    full = message_type if '/msg/' in message_type else f'{package}/msg/{name}'
    _, layout = typestore().fielddefs[full]
    values = {
        key: _nested(kind, fields.pop(key)) if key in fields else _default(kind)
        for key, kind in layout
    }
    assert not fields, f'{full} has no {sorted(fields)}'
    return typestore().types[full](**values)


def _nested(kind, value):
    if isinstance(value, dict):
        return make(kind[1], **value)
    return [_nested(kind[1][0], item) for item in value] if isinstance(value, list) else value


def _default(kind):
    number, what = int(kind[0]), kind[1]
    if number == 1:
        return {'string': '', 'bool': False}.get(what[0], 0.0 if 'float' in what[0] else 0)
    if number == 2:
        return make(what)
    inner, length = what
    if int(inner[0]) == 1 and inner[1][0] != 'string':
        return np.zeros(length if number == 3 else 0, inner[1][0].replace('bool', 'uint8'))
    return [_default(inner) for _ in range(length if number == 3 else 0)]


def header(stamp_ns=0, frame_id='world'):
    stamp = {'sec': stamp_ns // S, 'nanosec': stamp_ns % S}
    return make('std_msgs/Header', stamp=stamp, frame_id=frame_id)


def xyz(values):
    return dict(zip('xyz', map(float, values), strict=True))


def quaternion(pose):
    return dict(zip('xyzw', pose.quaternion.tolist(), strict=True))


def pose_message(pose):
    return make('geometry_msgs/Pose', position=xyz(pose.translation), orientation=quaternion(pose))


def pose_stamped(pose, stamp_ns, frame_id='world'):
    own = header(stamp_ns, frame_id)
    return make('geometry_msgs/PoseStamped', header=own, pose=pose_message(pose))


def odometry(pose, stamp_ns, frame_id, child):
    own, covered = header(stamp_ns, frame_id), {'pose': pose_message(pose)}
    return make('nav_msgs/Odometry', header=own, child_frame_id=child, pose=covered)


def transform(parent, child, pose, stamp_ns=0):
    moved = {'translation': xyz(pose.translation), 'rotation': quaternion(pose)}
    own = header(stamp_ns, parent)
    return make(
        'geometry_msgs/TransformStamped', header=own, child_frame_id=child, transform=moved
    )


def tf(*transforms):
    return make('tf2_msgs/TFMessage', transforms=list(transforms))


def point_cloud(dense, stamp_ns=0, frame_id='world', **renamed):
    """Return the points of a map; `label='semantic'` gives that field another name."""
    records = make_records(dense)
    return make(
        'sensor_msgs/PointCloud2',
        header=header(stamp_ns, frame_id),
        height=1,
        width=len(records),
        fields=[
            asdict(item) | {'name': renamed.get(item.name, item.name)}
            for item in list_fields(records)
        ],
        point_step=records.dtype.itemsize,
        row_step=records.nbytes,
        data=np.frombuffer(records.tobytes(), np.uint8),
    )


def map_messages(semantic_map, *, pieces=3):
    """Return announcement and chunks, as the package's nodes publish them."""
    payload = pack_map(semantic_map)
    digest = hashlib.sha256(payload).hexdigest()
    own = header(semantic_map.header.stamp_ns, semantic_map.header.frame_id)
    nodes = [
        {'kind': node.kind.value, 'id': node.id, 'labels': [asdict(item) for item in node.labels]}
        for node in semantic_map.graph.nodes
    ]
    announcement = make(
        'osmabench_ros/SemanticMap',
        header=own,
        method=semantic_map.header.provenance.method,
        participant='mapper',
        is_final=True,
        graph={'header': own, 'objects': nodes},
        digest=digest,
        payload_size=len(payload),
        chunk_count=pieces,
        payload_format='osmabench.semantic_map/1+zip',
    )
    cuts = np.array_split(np.frombuffer(payload, np.uint8), pieces)
    chunks = [
        make(
            'osmabench_ros/SemanticMapChunk',
            header=own, digest=digest, index=index, count=pieces, data=cut,
        )
        for index, cut in enumerate(cuts)
    ]  # fmt: skip
    return announcement, chunks


def write_messages(
    folder,
    messages,
    storage=StoragePlugin.MCAP,
    version=9,
    mode=CompressionMode.NONE,
    durability=None,
):
    """Write (topic, log time in ns, message) to a bag; from version 7 on with definitions."""
    store = typestore()
    bag = Writer(folder, version=8 if version < 9 else 9, storage_plugin=storage)
    bag.set_compression(mode, CompressionFormat.ZSTD)
    with bag:
        connections = {}
        for topic, log_ns, message in messages:
            kind = message.__msgtype__
            if topic not in connections:
                offered = [_qos(durability[topic])] if durability and topic in durability else []
                connections[topic] = bag.add_connection(
                    topic, kind, typestore=store, offered_qos_profiles=offered
                )
            bag.write(connections[topic], log_ns, store.serialize_cdr(message, kind))
    if version < 8:
        _age(folder, version)
    return folder


def _qos(durability):
    forever = interfaces.QosTime(9223372036, 854775807)
    history, reliability = interfaces.QosHistory.KEEP_LAST, interfaces.QosReliability.RELIABLE
    times = forever, forever, interfaces.QosLiveliness.AUTOMATIC, forever
    return interfaces.Qos(history, 1, reliability, durability, *times, False)


def beacon(index):
    """Return a message of a custom type."""
    return make(BEACON, header=header(START_NS + index, 'map'), number=index,
                words=f'beacon {index}')  # fmt: skip


def write_bag(folder, storage, *, count=20, payload=0, **options):
    """Write `count` messages on each of three topics: plain, stamped, and of a custom type."""
    rng = np.random.default_rng(0)
    messages = []
    for index in range(count):
        log_ns = START_NS + index * STEP_NS
        filler = rng.integers(97, 123, payload, dtype=np.uint8).tobytes().decode()
        pose = Pose(np.eye(3), [float(index), 0.0, 0.0])
        messages += [
            (NUMBERS, log_ns, make('std_msgs/String', data=f'{index}{filler}')),
            (POSES, log_ns + 1, pose_stamped(pose, START_NS + 7 * index, 'map')),
            (BEACONS, log_ns + 2, beacon(index)),
        ]
    durability = {
        POSES: interfaces.QosDurability.VOLATILE,
        BEACONS: interfaces.QosDurability.TRANSIENT_LOCAL,
    }
    return write_messages(folder, messages, storage, durability=durability, **options)


def _age(folder, version):
    """Make the metadata, and a database, like files of an older rosbag2."""
    file = folder / 'metadata.yaml'
    document = yaml.safe_load(file.read_text())
    content = document['rosbag2_bagfile_information']
    content['version'] = version
    for key, since in (('ros_distro', 8), ('custom_data', 6), ('files', 5)):
        if version < since:
            content.pop(key, None)
    for item in content['topics_with_message_count']:
        if version < 7:
            item['topic_metadata'].pop('type_description_hash', None)
    file.write_text(yaml.safe_dump(document))
    for database in folder.glob('*.db3'):
        with closing(sqlite3.connect(database)) as connection:
            connection.execute('DROP TABLE IF EXISTS metadata')
            if version < 7:
                # Humble's schema 3: no definitions, no hashes.
                connection.execute('DROP TABLE message_definitions')
                connection.execute('ALTER TABLE topics DROP COLUMN type_description_hash')
                connection.execute('UPDATE schema SET schema_version = 3')
            connection.commit()
            connection.execute('VACUUM')
