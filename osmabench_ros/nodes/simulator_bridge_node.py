"""Publishes a simulated scene along a path under a condition, at the pace the run asks for."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.duration import Duration
from rclpy.timer import Timer

from osmabench_ros.errors import ParticipantError
from osmabench_ros.msg import FrameAck, LabelInfo, RunInfo, RunState
from osmabench_ros.ros import topics
from osmabench_ros.ros.checked_subscription import create_checked_subscription
from osmabench_ros.ros.frame_publisher import FramePublisher
from osmabench_ros.ros.images import camera_info_message
from osmabench_ros.ros.label_messages import label_set_to_message
from osmabench_ros.ros.lifecycle import BenchmarkNode, run_node
from osmabench_ros.ros.light_messages import lighting_to_message
from osmabench_ros.ros.pacing import REPEAT_FIRST_AFTER_S, Acknowledgements, RealtimeClock
from osmabench_ros.ros.parameters import ParameterSpec
from osmabench_ros.ros.participants import Participant, missing_participants
from osmabench_ros.ros.poses import transform_message
from osmabench_ros.ros.qos import latched_profile, lossless_profile
from osmabench_ros.ros.simulation_parameters import SIMULATION_PARAMETERS, open_frames
from osmabench_ros.ros.stamps import (
    stamp_from_message,
    stamp_to_message,
)
from osmabench_ros.simulation.frame_source import FrameSource, SimulatedFrame
from osmabench_ros.version import version

PARAMETERS = (
    *SIMULATION_PARAMETERS,
    ParameterSpec('run_id', 'unnamed', 'Identity of the run, repeated in run_info.'),
    ParameterSpec('mapper', '', 'Name of the mapping method, repeated in run_info.'),
    ParameterSpec('config_sha256', '', 'Digest of the configuration, repeated in run_info.'),
    ParameterSpec('pacing', 'lockstep', 'Pacing of the run.', choices=('lockstep', 'realtime')),
    ParameterSpec('speed_factor', 1.0, 'Realtime: stamp seconds per wall second.', 0.001, 1000.0),
    ParameterSpec(
        'participants', [''], 'Nodes to wait for: NAME, or NAME:acks if it acknowledges frames.'
    ),
    ParameterSpec('match_timeout_s', 60.0, 'Wait for participants, seconds.', 0.1, 86400.0),
    ParameterSpec('ack_timeout_s', 120.0, 'Wait for acknowledgements, seconds.', 0.1, 86400.0),
)

TICK_S = 0.005
MATCH_PERIOD_S = 0.2


class SimulatorBridgeNode(BenchmarkNode):
    """Renders ahead by one frame and publishes it when the pacing allows."""

    def __init__(self) -> None:
        super().__init__('simulator_bridge', PARAMETERS)
        self._frames: FrameSource | None = None
        self._participants = [
            Participant.parse(text) for text in self.parameter['participants'] if text
        ]
        self._lockstep = self.parameter['pacing'] == 'lockstep'
        self._acks = Acknowledgements(
            [item.name for item in self._participants if item.acks],
            self.parameter['ack_timeout_s'],
        )
        self._realtime = RealtimeClock(self.parameter['speed_factor'])
        self._index = 0
        self._next: SimulatedFrame | None = None
        self._newest: SimulatedFrame | None = None
        self._state = RunState.STATE_WAITING
        self._timer: Timer | None = None
        self._started_s = 0.0

    def configure(self) -> None:
        """Load the scene, start the simulator, and make everything known that is latched."""
        frames = self._frames = open_frames(self.parameter)
        self._publisher = FramePublisher(
            self, lockstep=self._lockstep, base_to_camera=frames.base_to_camera
        )
        self._run_state = self.create_publisher(RunState, topics.RUN_STATE, latched_profile())
        self._run_info = self.create_publisher(RunInfo, topics.RUN_INFO, latched_profile())
        self._label_info = self.create_publisher(LabelInfo, topics.LABEL_INFO, latched_profile())
        create_checked_subscription(
            self, FrameAck, topics.FRAME_ACK, self._on_ack, lossless_profile()
        )
        self._next = frames.frame(0)
        stamp_ns = self._next.frame.stamp_ns
        self._label_info.publish(label_set_to_message(frames.label_set, stamp_ns))
        self._run_info.publish(self._describe_run(frames, stamp_ns))
        self._publish_state('waiting for participants')
        self.get_logger().info(f'{len(frames)} frames from {frames.description}')

    def activate(self) -> None:
        """Start to wait for the participants, or go on with the frames."""
        if self._state == RunState.STATE_PAUSED:
            self._go_on()
        elif self._state == RunState.STATE_WAITING:
            self._started_s = time.monotonic()
            self._start_timer(MATCH_PERIOD_S, self._match)

    def deactivate(self) -> None:
        """Publish no further frame until activated again."""
        self._stop_timer()
        if self._state == RunState.STATE_RUNNING:
            self._state = RunState.STATE_PAUSED
            self._publish_state('paused')

    def _go_on(self) -> None:
        self._state = RunState.STATE_RUNNING
        if self._newest is not None:
            # The time of a pause is nobody's fault.
            self._acks.resume(time.monotonic())
        self._start_timer(TICK_S, self._tick)

    def _start_timer(self, period_s: float, callback: Callable[[], None]) -> None:
        self._timer = self.create_timer(period_s, self.guarded(callback))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self._timer = None

    def cleanup(self) -> None:
        """Close the simulator."""
        if self._frames is not None:
            self._frames.close()
            self._frames = None

    def fail(self, error: Exception) -> None:
        """Tell everybody before ending."""
        if self.exit_code is None and hasattr(self, '_run_state'):
            self._state = RunState.STATE_FAILED
            self._publish_state(str(error))
            self._run_state.wait_for_all_acked(Duration(seconds=1))
        super().fail(error)

    def _match(self) -> None:
        missing = missing_participants(self, self._participants)
        if not missing:
            self._stop_timer()
            self._started_s = time.monotonic()
            self._go_on()
        elif time.monotonic() - self._started_s > self.parameter['match_timeout_s']:
            raise ParticipantError(
                f'after {self.parameter["match_timeout_s"]:g} s: {"; ".join(missing)}. Start it, '
                'or take it out of the declared participants'
            )

    def _tick(self) -> None:
        now_s = time.monotonic()
        if self._newest is not None:
            self._acks.check(now_s, self._index - 1)
        if self._newest is not None and self._lockstep and not self._acks.complete:
            self._repeat_first_frame(self._newest, now_s)
        elif self._next is None:
            self._finish_run()
        elif self._lockstep or self._realtime.due(self._next.frame.stamp_ns, now_s):
            self._publish_next(self._next)

    def _publish_next(self, frame: SimulatedFrame) -> None:
        self._publish_frame(frame)
        self._acks.expect(frame.frame.stamp_ns, time.monotonic())
        self._newest = frame
        self._index += 1
        self._publish_state('')
        # Rendering ahead overlaps with the work of the participants.
        assert self._frames is not None
        self._next = self._frames.frame(self._index) if self._index < len(self._frames) else None

    def _publish_frame(self, frame: SimulatedFrame) -> None:
        self._publisher.publish(
            frame.frame,
            lighting_to_message(frame.lighting, self.parameter['condition'], frame.segment),
        )

    def _repeat_first_frame(self, frame: SimulatedFrame, now_s: float) -> None:
        # A reader may discover this writer later than the writer the reader, and miss a frame.
        if self._index == 1 and now_s - self._repeated_s(now_s) > REPEAT_FIRST_AFTER_S:
            self._last_repeat_s = now_s
            self._publish_frame(frame)

    def _repeated_s(self, now_s: float) -> float:
        return getattr(self, '_last_repeat_s', now_s - self._acks.waited_s(now_s))

    def _on_ack(self, message: FrameAck) -> None:
        self._acks.receive(
            message.participant,
            stamp_from_message(message.header.stamp),
            time.monotonic(),
        )
        if self._lockstep and self._state == RunState.STATE_RUNNING:
            self._tick()

    def _finish_run(self) -> None:
        self._stop_timer()
        self._state = RunState.STATE_FINISHED
        self.done = True
        counts = ', '.join(f'{name} {count}' for name, count in self._acks.counts.items())
        self._publish_state(f'acknowledged: {counts}' if counts else '')
        self.get_logger().info(f'published {self._index} frames')

    def _publish_state(self, text: str) -> None:
        seconds = time.monotonic() - self._started_s
        running = self._state != RunState.STATE_WAITING
        state = RunState(
            state=self._state,
            run_id=self.parameter['run_id'],
            frames_published=self._index,
            frames_total=0 if self._frames is None else len(self._frames),
            frames_dropped=sum(self._index - count for count in self._acks.counts.values())
            if self._state == RunState.STATE_FINISHED
            else 0,
            rate=self._index / seconds if running and seconds > 0 else 0.0,
            message=text,
        )
        if self._newest is not None:
            state.header.stamp = stamp_to_message(self._newest.frame.stamp_ns)
        self._run_state.publish(state)

    def _describe_run(self, frames: FrameSource, stamp_ns: int) -> RunInfo:
        value = self.parameter
        info = RunInfo(
            run_id=value['run_id'],
            dataset=frames.dataset,
            scene=frames.scene,
            condition=value['condition'],
            mapper=value['mapper'],
            simulator=value['simulator'],
            seed=value['seed'],
            pacing=RunInfo.PACING_LOCKSTEP if self._lockstep else RunInfo.PACING_REALTIME,
            frame_rate=frames.frame_rate_hz,
            speed_factor=value['speed_factor'],
            frame_count=len(frames),
            participants=[item.name for item in self._participants],
            acking_participants=[item.name for item in self._participants if item.acks],
            world_frame=topics.WORLD_FRAME,
            base_frame=topics.BASE_FRAME,
            camera_frame=topics.CAMERA_FRAME,
            base_to_camera=transform_message(frames.base_to_camera),
            camera_info=camera_info_message(
                frames.intrinsics, stamp_to_message(stamp_ns), topics.CAMERA_FRAME
            ),
            config_sha256=value['config_sha256'],
            software_version=version(),
        )
        info.header.stamp = stamp_to_message(stamp_ns)
        info.header.frame_id = topics.WORLD_FRAME
        return info


def main() -> int:
    """Run the node."""
    return run_node(SimulatorBridgeNode)


if __name__ == '__main__':
    raise SystemExit(main())
