"""Hosts a bundled mapping method: frames in, a semantic map out."""

from __future__ import annotations

import time

from osmabench_ros.base.limits.documents import parse_mapping
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.mapper import Mapper
from osmabench_ros.mappers.registry import make_mapper, mapper_class
from osmabench_ros.msg import LabelInfo, RunState
from osmabench_ros.ros import topics
from osmabench_ros.ros.acknowledger import Acknowledger
from osmabench_ros.ros.checked_subscription import create_checked_subscription
from osmabench_ros.ros.diagnostics import Health, Level
from osmabench_ros.ros.frame_receiver import FrameReceiver
from osmabench_ros.ros.label_messages import label_set_from_message
from osmabench_ros.ros.lifecycle import BenchmarkNode
from osmabench_ros.ros.map_messages import MapPublisher
from osmabench_ros.ros.node_process import run_node
from osmabench_ros.ros.parameters import ParameterSpec
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.ros.recent_work import RecentWork

PARAMETERS = (
    ParameterSpec('mapper', 'oracle', 'Entry point in the group osmabench.mappers.'),
    ParameterSpec('options', '{}', 'Options of the mapper, a YAML mapping.'),
    ParameterSpec('seed', 0, 'Seed of everything random in the mapper.', 0, 2**31 - 1),
    ParameterSpec('pacing', 'lockstep', 'Pacing of the run.', choices=('lockstep', 'realtime')),
    ParameterSpec('settle_s', 1.0, 'Seconds without a frame that end a realtime run.', 0.0, 600.0),
    ParameterSpec(
        'map_every_frames',
        0,
        'Also publish the map after every so many frames; 0: never.',
        0,
        10**6,
    ),
)

MAX_WAITING = 32
"""Frames that are kept until the label set is known; more are dropped and counted."""

STALE_AFTER_S = 5.0
"""Without a frame, though the run goes on."""


class MapperNode(BenchmarkNode):
    """Integrates frames as they come, acknowledges each, publishes the final map."""

    def __init__(self) -> None:
        super().__init__('mapper', PARAMETERS)
        self._receiver: FrameReceiver | None = None
        self._labels: LabelInfo | None = None
        self._forget()

    def _forget(self) -> None:
        self._mapper: Mapper | None = None
        self._waiting: list[Frame] = []
        self._dropped = 0
        self._published = False
        self._last_frame_s = time.monotonic()
        self._frames_to_map: int | None = None
        self._running = False
        self._work = RecentWork()

    def configure(self) -> None:
        """Subscribe; the mapper itself is made when the label set is known."""
        self._labels = None
        self._forget()
        name, lockstep = self.parameter['mapper'], self.parameter['pacing'] == 'lockstep'
        self._options = _options_from_yaml(self.parameter['options'])
        self._acks = Acknowledger(self, self.get_name())
        self._maps = MapPublisher(self, self.get_name())
        self._receiver = FrameReceiver(
            self,
            self._on_frame,
            lockstep=lockstep,
            ground_truth=mapper_class(name).uses_ground_truth,
            on_repeat=self._acks.acknowledge,
            on_restart=self._start_over,
        )
        create_checked_subscription(
            self, LabelInfo, topics.LABEL_INFO, self._on_labels, latched_profile()
        )
        create_checked_subscription(
            self, RunState, topics.RUN_STATE, self._on_run_state, latched_profile()
        )
        self.create_timer(0.2, self.guarded(self._publish_when_done))

    def _start_over(self) -> None:
        """Map anew after a reset of the run, with the labels that were latched before."""
        self._forget()
        if self._labels is not None:
            self._on_labels(self._labels)

    def _on_labels(self, message: LabelInfo) -> None:
        self._labels = message
        if self._mapper is None:
            self._mapper = make_mapper(
                self.parameter['mapper'],
                label_set=label_set_from_message(message, topics.LABEL_INFO),
                seed=self.parameter['seed'],
                options=self._options,
            )
            waiting, self._waiting = self._waiting, []
            for frame in waiting:
                self._integrate(self._mapper, frame)

    def _on_frame(self, frame: Frame) -> None:
        if self._mapper is not None:
            self._integrate(self._mapper, frame)
            return
        self._waiting.append(frame)
        if len(self._waiting) > MAX_WAITING:
            dropped = self._waiting.pop(0)
            self._dropped += 1
            self._acks.acknowledge(dropped.stamp_ns, frame_index=dropped.index, mapped=False)

    def _integrate(self, mapper: Mapper, frame: Frame) -> None:
        start_s = time.monotonic()
        mapper.integrate(frame)
        self._last_frame_s = time.monotonic()
        self._work.add(self._last_frame_s - start_s, self._last_frame_s)
        self._acks.acknowledge(
            frame.stamp_ns,
            frame_index=frame.index,
            processing_time_s=self._last_frame_s - start_s,
        )
        every = self.parameter['map_every_frames']
        if every and self._work.count % every == 0:
            self._maps.publish(mapper.semantic_map(final=False), is_final=False)
        self._publish_when_done()

    def health(self) -> Health:
        """Return how many frames were mapped, how fast, and whether any comes."""
        receiver, now_s = self._receiver, time.monotonic()
        silent_s = now_s - self._last_frame_s
        level, message = Level.OK, 'published the map' if self._published else 'mapping'
        dropped = self._dropped + (receiver.incomplete if receiver is not None else 0)
        if self._running and silent_s > STALE_AFTER_S:
            level, message = Level.STALE, f'no frame for {silent_s:.0f} s'
        elif self._waiting:
            level, message = Level.WARN, f'frames wait for topic "{topics.LABEL_INFO}"'
        elif dropped:
            level, message = Level.WARN, f'{dropped} frames dropped or incomplete'
        elif not self._work.count:
            message = 'waiting for frames'
        values = {
            'frames_mapped': self._work.count,
            'frames_dropped': dropped,
            **self._work.values(now_s),
        }
        return Health(level, message, values)

    def _on_run_state(self, message: RunState) -> None:
        self._running = message.state == RunState.STATE_RUNNING
        if message.state == RunState.STATE_FINISHED:
            self._frames_to_map = message.frames_published
            self._publish_when_done()

    def _publish_when_done(self) -> None:
        """Publish once nothing can follow: all frames came, or (realtime) none for a while."""
        if self._published or self._mapper is None or self._frames_to_map is None:
            return
        all_here = self._work.count + self._dropped >= self._frames_to_map
        settled = time.monotonic() - self._last_frame_s > self.parameter['settle_s']
        if all_here or (self.parameter['pacing'] == 'realtime' and settled):
            self._published = True
            self._maps.publish(self._mapper.semantic_map(final=True), is_final=True)
            self.get_logger().info(f'published the map of {self._work.count} frames')


def _options_from_yaml(text: str) -> dict[str, object]:
    return parse_mapping(text, 'node mapper: parameter "options"', ConfigError)


def main() -> int:
    """Run the node."""
    return run_node(MapperNode)


if __name__ == '__main__':
    raise SystemExit(main())
