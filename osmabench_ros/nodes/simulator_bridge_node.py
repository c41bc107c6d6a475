"""Publishes a simulated scene or a recorded sequence, at the pace the run asks for."""

import time
from collections.abc import Callable
from functools import partial

from rclpy.duration import Duration
from rclpy.timer import Timer

from osmabench_ros.base import contract as topics
from osmabench_ros.base.processes import AttentiveClock
from osmabench_ros.errors import ParticipantError
from osmabench_ros.msg import LabelInfo, RecordedMap, RunInfo, RunState
from osmabench_ros.nodes import ack_listener, frame_player
from osmabench_ros.nodes.frame_player import BridgeSource, open_source
from osmabench_ros.nodes.frame_publisher import FramePublisher, lighting_to_message
from osmabench_ros.ros.messages.images import label_set_to_message
from osmabench_ros.ros.messages.map_messages import publish_vision_labels
from osmabench_ros.ros.node.diagnostics import Health
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node
from osmabench_ros.ros.node.participants import PERIOD_S as WATCH_PERIOD_S
from osmabench_ros.ros.node.participants import check_publishers, missing_participants
from osmabench_ros.ros.node.run_control import RunControl, RunPhase, serve_run_control
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.simulation.frame_source import SimulatedFrame

TICK_S = 0.005
MATCH_PERIOD_S = 0.05


class SimulatorBridgeNode(BenchmarkNode[BridgeSettings]):
    """Connects a FramePlayer to topics, and the control of the run to services."""

    def __init__(self) -> None:
        super().__init__('simulator_bridge', BridgeSettings)
        self._source: BridgeSource | None = None
        self._player: frame_player.FramePlayer | None = None
        self._control = RunControl()

    def configure(self) -> None:
        """Load the scene, start the simulator, and publish the latched topics."""
        value = self.settings
        self._control = RunControl(value.start_paused)
        self._timer: Timer | None = None
        self._restarts: ack_listener.RestartWatch | None = None
        self._every(WATCH_PERIOD_S, self._look_at_graph)
        self._text = ''
        source = self._source = open_source(value)
        frames = source.frames
        self._publisher = FramePublisher(
            self, lockstep=value.pacing.lockstep, base_to_camera=frames.base_to_camera, tf=value.tf
        )
        self._run_state = self.create_publisher(RunState, topics.RUN_STATE, latched_profile())
        self._run_info = self.create_publisher(RunInfo, topics.RUN_INFO, latched_profile())
        self._label_info = self.create_publisher(LabelInfo, topics.LABEL_INFO, latched_profile())
        ack_listener.listen_to_acks(self, value.participants, self._on_ack)
        self.subscribe(RecordedMap, topics.RECORDED_MAP, self._on_recorded)
        serve_run_control(self, self._control, self._follow_command, self.state_message)
        acking = [item.name for item in value.participants if item.acks]
        self._player = frame_player.FramePlayer(
            frames, self._control, acking, value.pacing, self._publish_frame, time.monotonic
        )
        stamp_ns = self._player.first_stamp_ns
        self._label_info.publish(label_set_to_message(frames.label_set, stamp_ns))
        publish_vision_labels(self, frames.label_set, stamp_ns)
        self._run_info.publish(frame_player.run_info_message(source, value, stamp_ns))
        self._publish_state('waiting to be activated')
        self.get_logger().info(f'{len(frames)} frames from {frames.description}')
        if self._player.runs_free:
            self.get_logger().warning(frame_player.RUNS_FREE)

    def activate(self) -> None:
        """Start to wait for the participants, or resume the frames."""
        self._control.active = True
        self._follow_phase()

    def deactivate(self) -> None:
        """Publish no further frame until activated again."""
        self._control.active = False
        self._follow_phase()

    def cleanup(self) -> None:
        """Close the simulator."""
        self._control.active = False
        self._player = None
        if self._source is not None:
            self._source.frames.close()
            self._source = None

    def fail(self, error: Exception) -> None:
        """Publish the failure as the state of the run before the process ends."""
        if self.exit_code is None and self._player is not None:
            self._control.fail()
            self._publish_state(str(error))
            self._run_state.wait_for_all_acked(Duration(seconds=1))
        super().fail(error)

    @property
    def phase(self) -> RunPhase:
        """State of the run."""
        return self._control.phase

    def _follow_command(self, name: str) -> None:
        if name == topics.RESET_RUN:
            # From frame 0, with the stamps of the first time.
            self._playing.restart()
            self._restarts = None
        self._follow_phase()

    def state_message(self) -> RunState:
        """Return the current run_state message."""
        assert self._source is not None
        return frame_player.run_state_message(
            self.settings.run_id, self.phase, self._playing, len(self._source.frames), self._text
        )

    def health(self) -> Health:
        """Return rate, drops and progress."""
        if self._player is None:
            return super().health()
        pacing = self.settings.pacing
        speed_factor = None if pacing.lockstep else pacing.speed_factor
        return frame_player.player_health(self._player, self.phase, speed_factor)

    @property
    def _playing(self) -> frame_player.FramePlayer:
        assert self._player is not None, 'services exist between configure and cleanup only'
        return self._player

    def _follow_phase(self) -> None:
        """Start the timer of the phase, and publish the phase."""
        if self._timer is not None:
            self.destroy_timer(self._timer)
            self._timer = None
        if self.phase is RunPhase.WAITING and self._control.active:
            self._waiting = AttentiveClock()
            self._timer = self._every(MATCH_PERIOD_S, self._match)
        elif self.phase is RunPhase.RUNNING:
            self._playing.resume()
            self._timer = self._every(TICK_S, self._tick)
        self._publish_state(self._control.awaits)

    def _every(self, period_s: float, callback: Callable[[], None]) -> Timer:
        return self.create_timer(period_s, self.guarded(callback))

    def _match(self) -> None:
        check_publishers(self)
        participants, timeout_s = self.settings.participants, self.settings.pacing.match_timeout_s
        missing = '; '.join(missing_participants(self, participants))
        if not missing:
            names = [item.name for item in participants]
            self._restarts = ack_listener.RestartWatch(self, names)
            self._control.match()
            self._follow_phase()
        elif self._waiting.now_s() > timeout_s:
            remedy = 'Start it, or take it out of the declared participants'
            raise ParticipantError(f'after {timeout_s:g} s: {missing}. {remedy}')

    def _look_at_graph(self) -> None:
        # Before the first frame, and once the final map is recorded, any node may come and go.
        if self._restarts is None:
            return
        recorders = self.count_publishers(self.resolve_topic_name(topics.RECORDED_MAP))
        map_is_due = self.phase is RunPhase.FINISHED and recorders > 0
        if self.phase in (RunPhase.RUNNING, RunPhase.PAUSED) or map_is_due:
            self._restarts.check(self._playing.published)
            check_publishers(self)

    def _on_recorded(self, message: RecordedMap) -> None:
        if message.is_final and self.phase is RunPhase.FINISHED:
            self._look_at_graph()
            self._restarts = None

    def _tick(self) -> None:
        self._playing.tick(self._after_change)

    def _after_change(self) -> None:
        if self.phase is RunPhase.RUNNING:
            self._publish_state('')
            return
        if self.phase is RunPhase.FINISHED:
            self.get_logger().info(f'published {self._playing.published} frames')
        self._follow_phase()

    def _publish_frame(self, frame: SimulatedFrame) -> None:
        assert self._source is not None
        lighting = None
        if self._source.lighting_known:
            lighting = lighting_to_message(frame.lighting, self._source.condition, frame.segment)
        self._publisher.publish(frame.frame, lighting)

    def _on_ack(self, ack: ack_listener.Acknowledgement, age_s: float) -> None:
        new = self._playing.acknowledge(ack, age_s)
        if self.phase is RunPhase.RUNNING:
            self._tick()
        elif new:
            # No further frame will publish the new state.
            self._publish_state(self._text)

    def _publish_state(self, text: str) -> None:
        self._text = text
        self._run_state.publish(self.state_message())


main = partial(run_node, SimulatorBridgeNode)

if __name__ == '__main__':
    raise SystemExit(main())
