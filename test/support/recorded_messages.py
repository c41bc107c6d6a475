"""Messages without ROS, and small bags of them with the definitions embedded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.disk.storage import pack_map
from osmabench_ros.maps.message_content import fields_of, records_of
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from support.bag_files import age

S = 10**9
OWN = Path(__file__).parents[2] / 'msg'
FOREIGN = {
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


@lru_cache(maxsize=1)
def typestore() -> Any:
    """Return the types of Humble, those of this package and some of others."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    types: dict[str, Any] = {}
    for name, text in FOREIGN.items():
        types.update(get_types_from_msg(text, name))
    for file in sorted(OWN.glob('*.msg')):
        types.update(get_types_from_msg(file.read_text(), f'osmabench_ros/msg/{file.stem}'))
    known = {name: fields for name, fields in types.items() if name not in store.types}
    store.register(known)
    return store


def make(message_type: str, **fields: Any) -> Any:
    """Return a message; fields that are not named have the defaults of ROS."""
    package, _, name = message_type.partition('/')
    full = message_type if '/msg/' in message_type else f'{package}/msg/{name}'
    _, layout = typestore().fielddefs[full]
    values = {key: fields.pop(key) if key in fields else _default(kind) for key, kind in layout}
    assert not fields, f'{full} has no {sorted(fields)}'
    return typestore().types[full](**values)


def _default(kind: Any) -> Any:
    number, what = int(kind[0]), kind[1]
    if number == 1:
        return {'string': '', 'bool': False}.get(what[0], 0.0 if 'float' in what[0] else 0)
    if number == 2:
        return make(what)
    inner, length = what
    if int(inner[0]) == 1 and inner[1][0] != 'string':
        return np.zeros(length if number == 3 else 0, inner[1][0].replace('bool', 'uint8'))
    return [_default(inner) for _ in range(length if number == 3 else 0)]


def header(stamp_ns: int = 0, frame_id: str = 'world') -> Any:
    stamp = make('builtin_interfaces/Time', sec=stamp_ns // S, nanosec=stamp_ns % S)
    return make('std_msgs/Header', stamp=stamp, frame_id=frame_id)


def xyz(kind: str, values: Sequence[float]) -> Any:
    return make(f'geometry_msgs/{kind}', **dict(zip('xyz', map(float, values), strict=True)))


def quaternion(pose: Pose) -> Any:
    values = dict(zip('xyzw', pose.quaternion.tolist(), strict=True))
    return make('geometry_msgs/Quaternion', **values)


def pose_message(pose: Pose) -> Any:
    place = xyz('Point', pose.translation)
    return make('geometry_msgs/Pose', position=place, orientation=quaternion(pose))


def pose_stamped(pose: Pose, stamp_ns: int, frame_id: str = 'world') -> Any:
    return make(
        'geometry_msgs/PoseStamped', header=header(stamp_ns, frame_id), pose=pose_message(pose)
    )


def odometry(pose: Pose, stamp_ns: int, frame_id: str, child: str) -> Any:
    covered = make('geometry_msgs/PoseWithCovariance', pose=pose_message(pose))
    return make(
        'nav_msgs/Odometry',
        header=header(stamp_ns, frame_id),
        child_frame_id=child,
        pose=covered,
    )


def transform(parent: str, child: str, pose: Pose, stamp_ns: int = 0) -> Any:
    moved = make(
        'geometry_msgs/Transform',
        translation=xyz('Vector3', pose.translation),
        rotation=quaternion(pose),
    )
    return make(
        'geometry_msgs/TransformStamped',
        header=header(stamp_ns, parent),
        child_frame_id=child,
        transform=moved,
    )


def tf(*transforms: Any) -> Any:
    return make('tf2_msgs/TFMessage', transforms=list(transforms))


def point_cloud(
    dense: DenseMap, stamp_ns: int = 0, frame_id: str = 'world', **renamed: str
) -> Any:
    """Return the points of a map; `label='semantic'` gives that field another name."""
    records = records_of(dense)
    fields = [
        make(
            'sensor_msgs/PointField',
            name=renamed.get(item.name, item.name),
            offset=item.offset,
            datatype=item.datatype,
            count=item.count,
        )
        for item in fields_of(records)
    ]
    return make(
        'sensor_msgs/PointCloud2',
        header=header(stamp_ns, frame_id),
        height=1,
        width=len(records),
        fields=fields,
        point_step=records.dtype.itemsize,
        row_step=records.nbytes,
        data=np.frombuffer(records.tobytes(), np.uint8),
    )


def map_messages(semantic_map: SemanticMap, *, pieces: int = 3) -> tuple[Any, list[Any]]:
    """Return announcement and chunks, as the package's nodes publish them."""
    payload = pack_map(semantic_map)
    digest = hashlib.sha256(payload).hexdigest()
    own = header(semantic_map.header.stamp_ns, semantic_map.header.frame_id)
    nodes = [
        make(
            'osmabench_ros/SceneObject',
            kind=node.kind.value,
            id=node.id,
            labels=[
                make(
                    'osmabench_ros/ScoredLabel',
                    name=label.name,
                    class_id=label.class_id,
                    score=label.score,
                )
                for label in node.labels
            ],
        )
        for node in semantic_map.graph.nodes
    ]
    announcement = make(
        'osmabench_ros/SemanticMap',
        header=own,
        method=semantic_map.header.provenance.method,
        participant='mapper',
        is_final=True,
        graph=make('osmabench_ros/SceneGraph', header=own, objects=nodes),
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
    folder: Path,
    messages: Sequence[tuple[str, int, Any]],
    storage: StoragePlugin = StoragePlugin.MCAP,
    version: int = 9,
) -> Path:
    """Write (topic, log time in ns, message) to a bag; from version 7 on with definitions."""
    store = typestore()
    with Writer(folder, version=8 if version < 9 else 9, storage_plugin=storage) as bag:
        connections: dict[str, Any] = {}
        for topic, log_ns, message in messages:
            kind = message.__msgtype__
            if topic not in connections:
                connections[topic] = bag.add_connection(topic, kind, typestore=store)
            bag.write(connections[topic], log_ns, store.serialize_cdr(message, kind))
    if version < 8:
        age(folder, version)
    return folder
