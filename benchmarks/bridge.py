"""Frames a second from the bare simulator to a subscriber, and what the lockstep bridge adds.

    python benchmarks/bridge.py
    python benchmarks/bridge.py --frames 20 --memory-frames 0

Every rate includes rendering: alone; with the images made messages; and published over DDS,
reliably, to a subscriber in another process whose acknowledgement is waited for. The overhead is
that of the bridge node as runs start it, over rendering the same frames before and after it, with
a mapper that only acknowledges. Run it on an idle machine; the load before and after is printed.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import rclpy
import typer
from bridge_subscriber import NAME
from measuring import console, empty_table
from osmabench_ros.msg import FrameAck
from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.bringup.definition import NodeSpec
from osmabench_ros.bringup.isolation import make_isolated_environment, private_domain
from osmabench_ros.bringup.runner.node_processes import ManagedProcess
from osmabench_ros.errors import ParticipantError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.nodes.frame_player import open_frames
from osmabench_ros.nodes.frame_publisher import FramePublisher
from osmabench_ros.ros.messages.images import image_to_message
from osmabench_ros.ros.messages.poses import stamp_from_message, stamp_to_message
from osmabench_ros.ros.node.participants import DeclaredParticipant, missing_participants
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.ros.qos import lossless_profile
from osmabench_ros.runs.config import CameraConfig, SceneConfig, TrajectoryConfig
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.simulation.frame_source import SimulatedFrames
from osmabench_ros.simulation.robot_path import Motion, plan_path
from osmabench_ros.simulation.walkable_grid import WalkableGrid

SIZES = ((640, 480), (1200, 680))
IMAGES = {'rgbd': 'RGB-D', 'all': 'all four'}
TARGET_OVERHEAD = 0.15
TIMEOUT_S = 60.0
IDLE = DeclaredParticipant(name=NAME, acks=True)


@dataclass(frozen=True)
class Setting:
    """What every measurement of a run of this program shares."""

    folder: Path
    environment: dict[str, str]
    settings: BridgeSettings
    duration_s: float

    def values(self, size: tuple[int, int], frames: int) -> BridgeSettings:
        """Return the bridge's settings for so many frames along the whole path."""
        camera = CameraConfig(width=size[0], height=size[1])
        trajectory = TrajectoryConfig(frame_rate_hz=(frames - 0.5) / self.duration_s)
        return self.settings.model_copy(update={'camera': camera, 'trajectory': trajectory})

    def log_file(self, name: str) -> Path:
        """Return a new path for each process of a name; logs are not overwritten."""
        return self.folder / f'{name}_{len(list(self.folder.glob(f"{name}_*.log")))}.log'

    def subscriber(self, images: str, frames: int) -> ManagedProcess:
        """Start the idle mapper."""
        program = str(Path(__file__).with_name('bridge_subscriber.py'))
        command = [sys.executable, program, '--frames', str(frames), '--images', images]
        return ManagedProcess(NAME, command, self.log_file(NAME), self.environment)

    def bridge(self, values: BridgeSettings) -> ManagedProcess:
        """Start the bridge as runs do; it waits for the idle mapper."""
        waiting = values.model_copy(update={'participants': (IDLE,)})
        spec = NodeSpec('simulator_bridge', 'simulator_bridge_node', waiting)
        folder = Path(tempfile.mkdtemp(dir=self.folder))  # Settings files are not replaced.
        command = [*spec.command_line(folder), '-p', 'autostart:=true']
        return ManagedProcess(spec.name, command, self.log_file('bridge'), self.environment)


@contextmanager
def prepared(reference: str, seed: int, condition: str) -> Iterator[Setting]:
    """Yield a setting whose path is planned and whose domain no other uses."""
    with tempfile.TemporaryDirectory() as name, private_domain() as domain:
        environment = dict(make_isolated_environment(domain))
        os.environ.update(environment)
        scene = load_scene(reference, seed=seed)
        navigation = WalkableGrid.of_scene(scene, radius_m=0.2, height_m=1.5)
        path = plan_path(navigation, goals=5, seed=seed)
        file = Path(name) / 'path.json'
        file.write_text(json.dumps(path.to_json()))
        config = SceneConfig(reference=reference, seed=seed)
        settings = BridgeSettings(scene=config, condition=condition, path_file=file)
        yield Setting(Path(name), environment, settings, float(path.times_s(Motion())[-1]))


class AcknowledgedPublisher:
    """Publishes frames as the bridge does and waits for each acknowledgement."""

    def __init__(self, frames: SimulatedFrames) -> None:
        self.node = Node('bridge_benchmark')
        mount = frames.base_to_camera
        self._publisher = FramePublisher(self.node, lockstep=True, base_to_camera=mount)
        self._acknowledged_ns = -1
        self.node.create_subscription(FrameAck, topics.FRAME_ACK, self._on_ack, lossless_profile())

    def _on_ack(self, message: FrameAck) -> None:
        self._acknowledged_ns = stamp_from_message(message.header.stamp)

    def wait_for_subscriber(self, frame: Frame) -> None:
        """Publish a first frame until it is acknowledged, as readers may match late."""
        self._spin_until(lambda: not missing_participants(self.node, [IDLE]))
        while self._acknowledged_ns < frame.stamp_ns:
            self._publisher.publish(frame)
            self._spin_until(lambda: self._acknowledged_ns >= frame.stamp_ns, 3.0, strict=False)

    def send(self, frame: Frame) -> None:
        """Publish and wait."""
        self._publisher.publish(frame)
        self._spin_until(lambda: self._acknowledged_ns >= frame.stamp_ns)

    def _spin_until(
        self, true: Callable[[], bool], timeout_s: float = TIMEOUT_S, strict: bool = True
    ) -> None:
        deadline = time.monotonic() + timeout_s
        while not true():
            rclpy.spin_once(self.node, timeout_sec=0.05)
            if time.monotonic() > deadline:
                if strict:
                    raise ParticipantError(f'{NAME} did not answer within {timeout_s:g} s')
                return


def seconds_per_frame(frames: SimulatedFrames, use: Callable[[Frame], None]) -> float:
    """Return the wall time of rendering a frame and using it; the first frame is warm-up."""
    frames.frame(0)
    start = time.perf_counter()
    for index in range(1, len(frames)):
        use(frames.frame(index).frame)
    return (time.perf_counter() - start) / (len(frames) - 1)


def chosen(frame: Frame, images: str) -> Frame:
    """Return the frame without the images that are not asked for."""
    return frame if images == 'all' else replace(frame, semantic=None, instance=None)


def convert(frame: Frame) -> None:
    """Make messages of all images that a frame has."""
    stamp = stamp_to_message(frame.stamp_ns)
    for image, encoding in (
        (frame.color, 'rgb8'),
        (frame.depth_m, '32FC1'),
        (frame.semantic, '16UC1'),
        (frame.instance, '32SC1'),
    ):
        if image is not None:
            image_to_message(image, encoding, stamp, topics.CAMERA_FRAME)


def over_dds(setting: Setting, frames: SimulatedFrames, images: str) -> tuple[float, float]:
    """Return seconds per frame with rendering, and those from publication to acknowledgement."""
    subscriber = setting.subscriber(images, len(frames))
    rclpy.init(args=[])
    carried_s: list[float] = []
    publisher = AcknowledgedPublisher(frames)
    try:
        publisher.wait_for_subscriber(chosen(frames.frame(0).frame, images))

        def send(frame: Frame) -> None:
            start = time.perf_counter()
            publisher.send(chosen(frame, images))
            carried_s.append(time.perf_counter() - start)

        return seconds_per_frame(frames, send), float(np.median(carried_s))
    finally:
        # Else its publishers would stay next to the bridge's.
        publisher.node.destroy_node()
        rclpy.shutdown()
        subscriber.stop()


def print_rates(setting: Setting, frame_count: int) -> None:
    """Print frames per second of the three ways."""
    figures = ('bare', 'as messages', 'over DDS', 'publish to ack, ms')
    table = empty_table('frames/s with rendering', ('size', 'images'), figures)
    for size in SIZES:
        frames = open_frames(setting.values(size, frame_count))
        for images, title in IMAGES.items():
            bare = seconds_per_frame(frames, lambda _frame: None)
            converted = seconds_per_frame(frames, lambda frame: convert(chosen(frame, images)))  # noqa: B023
            carried, latency = over_dds(setting, frames, images)
            rates = [f'{1 / seconds:.1f}' for seconds in (bare, converted, carried)]
            table.add_row('{} x {}'.format(*size), title, *rates, f'{1e3 * latency:.1f}')
        frames.close()
    console.print(table)


@dataclass(frozen=True)
class BridgeRun:
    """What the idle mapper saw of the bridge: arrivals, and peak memory in MiB at these."""

    arrivals_s: list[float]
    memory_mib: dict[str, list[float]]

    @property
    def seconds_per_frame(self) -> float:
        """Wall time between frames."""
        return (self.arrivals_s[-1] - self.arrivals_s[0]) / (len(self.arrivals_s) - 1)


def run_bridge(
    setting: Setting, size: tuple[int, int], images: str, frame_count: int, longest_s: float
) -> BridgeRun:
    """Run the bridge node in lockstep with the idle mapper."""
    samples: list[tuple[float, dict[str, float]]] = []
    with ExitStack() as stack:
        subscriber = setting.subscriber(images, frame_count)
        stack.callback(subscriber.stop)
        bridge = setting.bridge(setting.values(size, frame_count))
        stack.callback(bridge.stop)
        deadline = time.monotonic() + longest_s
        while not (log := subscriber.log_file.read_text()).endswith('}\n'):
            for process in (bridge, subscriber):
                if process.poll() is not None:
                    raise ParticipantError(f'{process.name} ended: {process.reason()}')
            used = {item.name: item.peak_memory_bytes / 2**20 for item in (bridge, subscriber)}
            samples.append((time.monotonic(), used))
            if time.monotonic() > deadline:
                raise ParticipantError(f'{NAME} lacks frames after {longest_s:g} s')
            time.sleep(0.2)
    result = json.loads(log.splitlines()[-1])
    if result['incomplete']:
        raise ParticipantError(f'{result["incomplete"]} frames arrived incomplete')
    return BridgeRun(result['arrivals_s'], _aligned(result['arrivals_s'], samples))


def _aligned(
    arrivals_s: list[float], samples: list[tuple[float, dict[str, float]]]
) -> dict[str, list[float]]:
    times = [time_s for time_s, _ in samples]
    index = np.clip(np.searchsorted(times, arrivals_s), 0, len(samples) - 1)
    return {name: [samples[i][1][name] for i in index] for name in samples[0][1]}


def print_overhead(setting: Setting, frame_count: int) -> None:
    """Print what the lockstep bridge adds to the time of rendering."""
    headline = 'the bridge in lockstep with an idle mapper, ms/frame'
    table = empty_table(headline, ('size', 'images'), ('rendering', 'bridge', 'overhead'))
    for size in SIZES:
        for images, title in IMAGES.items():
            before = _rendering(setting, size, frame_count)
            bridge = run_bridge(setting, size, images, frame_count, 600.0).seconds_per_frame
            rendering = (before + _rendering(setting, size, frame_count)) / 2
            overhead = bridge / rendering - 1
            style = 'green' if overhead <= TARGET_OVERHEAD else 'red'
            milliseconds = (f'{1e3 * rendering:.1f}', f'{1e3 * bridge:.1f}')
            share = f'[{style}]{overhead:+.0%}[/]'
            table.add_row('{} x {}'.format(*size), title, *milliseconds, share)
    console.print(table)
    console.print(f'target: at most {TARGET_OVERHEAD:+.0%}')


def _rendering(setting: Setting, size: tuple[int, int], frame_count: int) -> float:
    frames = open_frames(setting.values(size, frame_count))
    try:
        return seconds_per_frame(frames, lambda _frame: None)
    finally:
        frames.close()


def print_memory(setting: Setting, frame_count: int) -> None:
    """Print how the greatest memory of bridge and idle mapper grows over many frames."""
    run = run_bridge(setting, SIZES[0], 'all', frame_count, 60.0 + 2.0 * frame_count)
    for name, used in run.memory_mib.items():
        settled = used[frame_count // 10]
        console.print(
            f'memory of {name} over {frame_count} frames: {settled:.0f} MiB after a tenth, '
            f'{used[-1]:.0f} MiB at the end ({used[-1] - settled:+.1f})',
            soft_wrap=True,
        )


def main(
    scene: str = 'apartment',
    seed: int = 0,
    condition: str = 'baseline',
    frames: Annotated[int, typer.Option(min=3, help='of every measurement')] = 60,
    memory_frames: Annotated[int, typer.Option(min=0, help='20 or more; 0 is none')] = 2000,
) -> None:
    """Run the benchmark."""
    if 0 < memory_frames < 20:
        raise typer.BadParameter('--memory-frames must be 0 or 20 or more')
    with prepared(scene, seed, condition) as setting:
        console.print(f'{os.cpu_count()} cores, load before: {os.getloadavg()[0]:.1f}')
        print_rates(setting, frames)
        print_overhead(setting, frames)
        if memory_frames:
            print_memory(setting, memory_frames)
        console.print(f'load after: {os.getloadavg()[0]:.1f}')


if __name__ == '__main__':
    typer.run(main)
