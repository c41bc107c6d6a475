"""What recording costs, and whether it loses anything, at 25 Hz of all four 640x480 images.

    python benchmarks/bags.py
    python benchmarks/bags.py --seconds 10 --compression none

A publisher in another process sends colour, depth, class and instance images, both cameras'
intrinsics, poses and the state of the run; the recorder is a node of its process.
Then the same messages are written from memory without ROS, which is the least that a recording can
cost, and read. Images have the noise of a camera, which makes them hard to compress. Run it on an
idle machine; the load is printed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import psutil
import rclpy
from geometry_msgs.msg import PoseStamped
from measuring import console, empty_table
from nav_msgs.msg import Odometry
from osmabench_ros.msg import RunState
from rclpy.node import Node
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CameraInfo, Image

from osmabench_ros.base import contract as topics
from osmabench_ros.bringup.definition import recorder_node
from osmabench_ros.bringup.isolation import make_isolated_environment, private_domain
from osmabench_ros.bringup.runner.node_processes import ManagedProcess
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.ros.messages.images import camera_info_message, image_to_message
from osmabench_ros.ros.messages.message_definitions import definition_of, hash_of
from osmabench_ros.ros.messages.poses import pose_message, stamp_to_message
from osmabench_ros.ros.qos import frame_profile, latched_profile
from osmabench_ros.sequences.bags.bag import open_bag
from osmabench_ros.sequences.bags.mcap_recording import McapRecording
from osmabench_ros.sequences.bags.recording_report import (
    Compression,
    RecordedTopic,
    RecordingReport,
    RecordingSettings,
    read_report,
)

WIDTH, HEIGHT, RATE_HZ = 640, 480, 25
DRAWN = 8
TYPES = {
    **dict.fromkeys((topics.COLOR, topics.DEPTH, topics.SEMANTIC, topics.INSTANCE), Image),
    **dict.fromkeys((topics.COLOR_INFO, topics.DEPTH_INFO), CameraInfo),
    topics.CAMERA_POSE: PoseStamped,
    topics.ODOMETRY: Odometry,
}
FINISH_S = 600.0


def frame_messages(index: int) -> dict[str, bytes]:
    """Return the serialised messages of a frame whose images have a camera's noise."""
    rng = np.random.default_rng(index)
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    shade = 100 + 60 * np.sin(rows / 40 + index) * np.cos(columns / 60)
    color = shade[..., None] + rng.normal(0, 2, (HEIGHT, WIDTH, 3))
    depth = 3 + np.sin(columns / 200 + index) + rng.normal(0, 0.002, (HEIGHT, WIDTH))
    labels = (rows // 60 * 8 + columns // 80 + index) % 50
    stamp, camera = stamp_to_message(0), Intrinsics(WIDTH, HEIGHT, 320.0, 320.0, 319.5, 239.5)
    info = camera_info_message(camera, stamp, topics.CAMERA_FRAME)
    pose, odometry = PoseStamped(), Odometry()
    pose.pose = odometry.pose.pose = pose_message(Pose.from_yaw(0.1 * index))
    frame = topics.CAMERA_FRAME
    messages: dict[str, Any] = {
        topics.CAMERA_POSE: pose,
        topics.ODOMETRY: odometry,
        topics.COLOR_INFO: info,
        topics.DEPTH_INFO: info,
        topics.COLOR: image_to_message(color.clip(0, 255).astype(np.uint8), 'rgb8', stamp, frame),
        topics.DEPTH: image_to_message(depth.astype(np.float32), '32FC1', stamp, frame),
        topics.SEMANTIC: image_to_message(labels.astype(np.uint16), '16UC1', stamp, frame),
        topics.INSTANCE: image_to_message(labels.astype(np.int32), '32SC1', stamp, frame),
    }
    return {topic: bytes(serialize_message(item)) for topic, item in messages.items()}


def stamped(data: bytes, index: int) -> bytes:
    """Return a message with the stamp of a frame, which comes right after CDR's 4 bytes."""
    stamp_ns = 10**9 + index * 10**9 // RATE_HZ
    seconds, nanoseconds = divmod(stamp_ns, 10**9)
    stamp = seconds.to_bytes(4, 'little') + nanoseconds.to_bytes(4, 'little')
    return data[:4] + stamp + data[12:]


def publish(frames: int) -> None:
    """Be the publisher: every frame in time, however fast the recorder is."""
    rclpy.init()
    node = Node('publisher')
    profile = frame_profile(lockstep=False)
    publishers = {name: node.create_publisher(kind, name, profile) for name, kind in TYPES.items()}
    state = node.create_publisher(RunState, topics.RUN_STATE, latched_profile())
    state.publish(RunState(state=RunState.STATE_WAITING))
    drawn = [frame_messages(index) for index in range(DRAWN)]
    while min(node.count_subscribers(name) for name in TYPES) < 1:
        time.sleep(0.05)
    time.sleep(1.0)
    start_s, late_s = time.monotonic(), 0.0
    for index in range(frames):
        due_s = start_s + index / RATE_HZ
        late_s = max(late_s, time.monotonic() - due_s)
        time.sleep(max(0.0, due_s - time.monotonic()))
        for name, data in drawn[index % DRAWN].items():
            publishers[name].publish(stamped(data, index))
        running = RunState(state=RunState.STATE_RUNNING, frames_published=index + 1)
        running.header.stamp = stamp_to_message(10**9 + index * 10**9 // RATE_HZ)
        state.publish(running)
    took_s = time.monotonic() - start_s
    print(f'{frames / took_s:.1f} Hz, at most {late_s * 1e3:.0f} ms late', flush=True)
    sys.stdin.read()


def record(folder: Path, frames: int, compression: Compression) -> tuple[RecordingReport, float]:
    """Return the recorder's report and its CPU seconds."""
    node = recorder_node(folder, RecordingSettings(compression=compression))
    with tempfile.TemporaryDirectory() as plans:
        command = [*node.command_line(Path(plans)), '-p', 'autostart:=true']
        recorder = ManagedProcess(node.name, command, Path(plans, 'log'), os.environ)
        publisher = subprocess.Popen(
            [sys.executable, __file__, '--publish', str(frames)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert publisher.stdout is not None
            told = publisher.stdout.readline().strip()
            console.print(f'publisher: {told or "died"}')
            time.sleep(1.0)
            used_s = cpu_seconds(recorder)
        finally:
            publisher.communicate()
            recorder.stop(FINISH_S)
        if recorder.poll() != 0:
            raise SystemExit(recorder.reason())
    return read_report(folder), used_s


def cpu_seconds(recorder: ManagedProcess) -> float:
    """Return the CPU time of the recorder up to now."""
    times = psutil.Process(recorder.pid).cpu_times()
    return float(times.user + times.system)


def from_memory(write: Callable[[str, int, bytes], None], frames: int) -> None:
    """Hand all messages of the benchmark to a writer."""
    drawn = [frame_messages(index) for index in range(DRAWN)]
    for index in range(frames):
        for name, data in drawn[index % DRAWN].items():
            write(f'/{name}', 10**9 + index, stamped(data, index))


def with_mcap(folder: Path, frames: int, compression: Compression) -> None:
    """Write with mcap, as the recorder does."""
    recording = McapRecording(folder, RecordingSettings(compression=compression))
    for name, kind in TYPES.items():
        text = type_text(kind)
        made = RecordedTopic(f'/{name}', text, 0, (), definition_of(text), hash_of(text))
        recording.add_topic(made)
    from_memory(lambda name, ns, data: recording.write(name, ns, ns, data), frames)
    recording.close()


def reading_s(folder: Path) -> float:
    """Return the processor time for reading all messages of a bag, the best of three passes."""
    passes = []
    for _ in range(3):
        start_s = time.process_time()
        with open_bag(folder) as bag:
            size = sum(len(item.data) for item in bag.messages())
        passes.append(time.process_time() - start_s)
    console.print(f'read {size / 1e6:.0f} MB of messages')
    return min(passes)


def type_text(kind: type[Any]) -> str:
    """Return the name of a message type."""
    return f'{kind.__module__.split(".")[0]}/msg/{kind.__name__}'


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--compression', choices=get_args(Compression), default='zstd')
    parser.add_argument('--folder', type=Path, help='where to record; default: a temporary one')
    parser.add_argument('--publish', type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.publish is not None:
        publish(options.publish)
        return
    frames = options.seconds * RATE_HZ
    console.print(f'{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}')
    with tempfile.TemporaryDirectory(dir=options.folder) as name, private_domain() as domain:
        os.environ.update(make_isolated_environment(domain))
        folder = Path(name)
        report, recorder_s = record(folder / 'recorded', frames, options.compression)
        shutil.rmtree(folder / 'recorded')
        start_s = time.process_time()
        with_mcap(folder / 'written', frames, options.compression)
        written_s = time.process_time() - start_s
        start_s = time.process_time()
        from_memory(lambda *_: None, frames)
        written_s -= time.process_time() - start_s
        used = {'written from memory': written_s, 'read': reading_s(folder / 'written')}
    show(report, recorder_s, used, options)


def show(
    report: RecordingReport,
    recorder_s: float,
    plain: dict[str, float],
    options: argparse.Namespace,
) -> None:
    """Print the times."""
    console.print(report.summary(), highlight=False)
    raw = sum(len(data) for data in frame_messages(0).values()) * RATE_HZ
    title = f'{raw / 1e6:.0f} MB/s for {options.seconds} s, {options.compression.value}'
    table = empty_table(title, ('',), ('CPU s', 'cores', 'recorder / this'))
    table.add_row('recorder', f'{recorder_s:.1f}', f'{recorder_s / options.seconds:.0%}', '1')
    for label, used_s in plain.items():
        share, ratio = used_s / options.seconds, recorder_s / used_s
        table.add_row(label, f'{used_s:.1f}', f'{share:.0%}', f'{ratio:.2f}')
    console.print(table)
    queue = f'{report.queue_peak_bytes / 2**20:.0f} MiB at most'
    console.print(f'lost: {report.lost} of {report.messages + report.lost}; queue {queue}')


if __name__ == '__main__':
    main()
