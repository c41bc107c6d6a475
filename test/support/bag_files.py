"""Bags of several kinds, written with rosbags and changed by hand where it writes none such."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

BEACON = 'robot_msgs/msg/Beacon'
BEACON_TEXT = 'std_msgs/Header header\nuint32 number\nstring words\n'
NUMBERS = '/numbers'
POSES = '/poses'
BEACONS = '/beacons'
START_NS = 1_700_000_000_000_000_000
STEP_NS = 10_000_000
FOREVER = QosTime(9223372036, 854775807)


def offered(durability: QosDurability) -> Qos:
    return Qos(
        QosHistory.KEEP_LAST, 1, QosReliability.RELIABLE, durability, FOREVER, FOREVER,
        QosLiveliness.AUTOMATIC, FOREVER, False,
    )  # fmt: skip


def typestore() -> Any:
    store = get_typestore(Stores.ROS2_HUMBLE)
    store.register(get_types_from_msg(BEACON_TEXT, BEACON))
    return store


def beacon(index: int) -> Any:
    types = typestore().types
    stamp = types['builtin_interfaces/msg/Time'](*divmod(START_NS + index, 10**9))
    header = types['std_msgs/msg/Header'](stamp, 'map')
    return types[BEACON](header, index, f'beacon {index}')


def write_bag(
    folder: Path,
    storage: StoragePlugin,
    *,
    count: int = 20,
    version: int = 9,
    mode: CompressionMode = CompressionMode.NONE,
    payload: int = 0,
) -> Path:
    """Write `count` messages on each of three topics: plain, stamped, and of a custom type."""
    store = typestore()
    writer = Writer(folder, version=8 if version < 9 else 9, storage_plugin=storage)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        number = writer.add_connection(NUMBERS, 'std_msgs/msg/String', typestore=store)
        pose = writer.add_connection(
            POSES,
            'geometry_msgs/msg/PoseStamped',
            typestore=store,
            offered_qos_profiles=[offered(QosDurability.VOLATILE)],
        )
        mark = writer.add_connection(
            BEACONS,
            BEACON,
            typestore=store,
            offered_qos_profiles=[offered(QosDurability.TRANSIENT_LOCAL)],
        )
        rng = np.random.default_rng(0)
        for index in range(count):
            log_ns = START_NS + index * STEP_NS
            filler = rng.integers(97, 123, payload, dtype=np.uint8).tobytes().decode()
            text = store.types['std_msgs/msg/String'](f'{index}{filler}')
            writer.write(number, log_ns, store.serialize_cdr(text, 'std_msgs/msg/String'))
            writer.write(pose, log_ns + 1, _pose(store, index))
            writer.write(mark, log_ns + 2, store.serialize_cdr(beacon(index), BEACON))
    if version < 8:
        age(folder, version)
    return folder


def _pose(store: Any, index: int) -> Any:
    types = store.types
    stamp = types['builtin_interfaces/msg/Time'](*divmod(START_NS + 7 * index, 10**9))
    message = types['geometry_msgs/msg/PoseStamped'](
        types['std_msgs/msg/Header'](stamp, 'map'),
        types['geometry_msgs/msg/Pose'](
            types['geometry_msgs/msg/Point'](float(index), 0.0, 0.0),
            types['geometry_msgs/msg/Quaternion'](0.0, 0.0, 0.0, 1.0),
        ),
    )
    return store.serialize_cdr(message, 'geometry_msgs/msg/PoseStamped')


def age(folder: Path, version: int) -> None:
    """Make the metadata, and a database, what an older rosbag2 wrote."""
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


def split_in_two(folder: Path, second: Path) -> None:
    """Put the file of another bag behind that of the first."""
    suffix = next(file for file in folder.iterdir() if file.suffix in ('.mcap', '.db3')).suffix
    name = f'{folder.name}_later{suffix}'
    next(second.glob(f'*{suffix}')).rename(folder / name)
    file = folder / 'metadata.yaml'
    document = yaml.safe_load(file.read_text())
    document['rosbag2_bagfile_information']['relative_file_paths'].append(name)
    file.write_text(yaml.safe_dump(document))
