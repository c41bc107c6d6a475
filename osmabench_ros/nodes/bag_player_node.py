"""Plays a bag through the topics it was recorded from."""

from __future__ import annotations

import time
from pathlib import Path

from rclpy.duration import Duration

from osmabench_ros.errors import ConfigError
from osmabench_ros.msg import RunState
from osmabench_ros.ros.bag_publishers import BagPublishers
from osmabench_ros.ros.diagnostics import Health, Level
from osmabench_ros.ros.lifecycle import BenchmarkNode
from osmabench_ros.ros.node_process import run_node
from osmabench_ros.ros.parameters import ParameterSpec
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.ros.run_control import RunControl, RunPhase
from osmabench_ros.ros.run_services import RunServices
from osmabench_ros.sequences.bag import Bag, BagMessage, open_bag
from osmabench_ros.sequences.playback import Playback, PlaybackOptions

PARAMETERS = (
    ParameterSpec('bag', '', 'Folder of a bag, or an .mcap or .db3 file.'),
    ParameterSpec('msg_paths', [''], 'Message definitions that the bag lacks: files or folders.'),
    ParameterSpec('rate', 1.0, 'Seconds of the bag in a second.', 0.001, 1000.0),
    ParameterSpec('start_s', 0.0, 'Seconds into the bag to start at.', 0.0, 1e9),
    ParameterSpec('duration_s', 0.0, 'Seconds of the bag to play; 0 to the end.', 0.0, 1e9),
    ParameterSpec('loop', False, 'Start over at the end.'),
    ParameterSpec('paused', False, 'Wait for start_run or step_run.'),
    ParameterSpec('clock', True, 'Publish /clock: as recorded, else the newest header stamp.'),
    ParameterSpec('topics', [''], 'Topics to play; empty for all.'),
    ParameterSpec('delay_s', 1.0, 'Wait for subscribers to find this node, seconds.', 0.0, 3600.0),
)

STATE_TOPIC = '~/state'
TICK_S = 0.0001
"""Until the next look, where something is due already."""
BATCH_S = 0.02
"""For messages that are due, before services are looked after again."""
STATE_PERIOD_S = 0.2
DELIVERY_TIMEOUT_S = 5.0


class BagPlayerNode(BenchmarkNode):
    """Publishes messages without deserialising them when their time comes.

    Its state counts messages, not frames: those played and those of all played topics.
    """

    def __init__(self) -> None:
        super().__init__('bag_player', PARAMETERS)
        value = self.parameter
        self._options = PlaybackOptions(
            value['rate'], value['start_s'], value['duration_s'], value['loop']
        )
        self._control = RunControl(start_paused=value['paused'])
        self._bag: Bag | None = None
        self._played = self._total = 0
        self._ready_s = 0.0
        self._stepping = False

    @property
    def phase(self) -> RunPhase:
        """Where playing is."""
        return self._control.phase

    @property
    def frames_published(self) -> int:
        """Messages since the start or the last reset."""
        return self._played

    def configure(self) -> None:
        """Open the bag and offer its topics."""
        value = self.parameter
        if not value['bag']:
            raise ConfigError('node bag_player: parameter "bag" is empty; name a bag')
        paths = [Path(item) for item in value['msg_paths'] if item]
        bag = self._bag = open_bag(Path(value['bag']), paths)
        chosen = [item for item in value['topics'] if item]
        self._outlets = BagPublishers(self, bag, chosen, clock=value['clock'])
        if not self._outlets.topics:
            raise ConfigError(
                f'{bag.path}: no type of its topics is installed here; build their packages'
            )
        counts = bag.connections_by_topic
        self._total = sum(counts[name].message_count for name in self._outlets.topics)
        self._playback = Playback(bag, self._outlets.topics, self._options)
        self._state = self.create_publisher(RunState, STATE_TOPIC, latched_profile())
        self._run_services = RunServices(self, self)
        if bag.cut_off:
            self.get_logger().warning(f'{bag.path} is not complete: {bag.cut_off}')
        self._timer = self.create_timer(TICK_S, self.guarded(self._tick))
        self.create_timer(STATE_PERIOD_S, self.guarded(self._tell))

    def activate(self) -> None:
        """Play once subscribers had time to find this node."""
        self._control.active = True
        self._ready_s = time.monotonic() + self.parameter['delay_s']
        self._look_again(0.0)
        assert self._bag is not None
        self.get_logger().info(
            f'playing {self._bag.path}: {self._total} messages, {self._playback.length_s:.1f} s'
        )

    def deactivate(self) -> None:
        """Let time stand still."""
        self._control.active = False
        self._playback.halt()

    def cleanup(self) -> None:
        """Close the bag."""
        bag, self._bag = self._bag, None
        if bag is not None:
            bag.close()

    def health(self) -> Health:
        """Return how far it is."""
        cut_off = self._bag.cut_off if self._bag is not None else ''
        return Health(
            Level.WARN if cut_off else Level.OK,
            cut_off or self.phase.name.lower(),
            {'messages': self._played},
        )

    def start_run(self) -> None:
        """Go on."""
        self._control.start()
        self._stepping = False
        self._playback.halt()
        self._look_again(0.0)
        self._tell()

    def pause_run(self) -> None:
        """Let time stand still."""
        self._control.pause()
        self._playback.halt()
        self._tell()

    def step_run(self, frames: int) -> None:
        """Play some frames, then pause again."""
        self._control.step(frames)
        self._stepping = True
        self._look_again(0.0)

    def reset_run(self) -> None:
        """Go back to the start."""
        self._control.reset()
        self._rewind()
        self._look_again(0.0)
        self._tell()

    def quit_run(self) -> None:
        """End the process."""
        self.finish(0)

    def state_message(self) -> RunState:
        """Return where playing is; the message has the position and what is wrong."""
        return RunState(
            state=int(self.phase),
            frames_published=self._played,
            frames_total=self._total,
            message=self._text(),
        )

    def _text(self) -> str:
        position = f'{self._playback.position_s:.2f} of {self._playback.length_s:.2f} s'
        cut_off = self._bag.cut_off if self._bag is not None else ''
        return f'{position}; the bag is not complete: {cut_off}' if cut_off else position

    def _tick(self) -> None:
        now_s = time.monotonic()
        if now_s < self._ready_s:
            self._look_again(self._ready_s - now_s)
            return
        self._control.match()
        if self._control.may_publish:
            if self._stepping:
                self._play_frame()
            else:
                self._play_due(now_s)
            if self._playback.at_end:
                self._end()
        if self._control.may_publish:
            self._look_again(0.0 if self._stepping else self._playback.wait_s(time.monotonic()))
        else:
            # Held: nothing to look at until a service or the lifecycle says so.
            self._timer.cancel()

    def _look_again(self, after_s: float) -> None:
        self._timer.timer_period_ns = round(min(max(after_s, TICK_S), STATE_PERIOD_S) * 1e9)
        self._timer.reset()

    def _play_due(self, now_s: float) -> None:
        if self._played == 0:
            self._play_latched()
        while (message := self._playback.due(time.monotonic())) is not None:
            self._publish(message)
            if time.monotonic() - now_s > BATCH_S:
                return

    def _play_frame(self) -> None:
        if self._played == 0:
            self._play_latched()
        for message in self._playback.step():
            self._publish(message)
        self._control.count_frame()
        if self._control.end_steps():
            self._tell()

    def _play_latched(self) -> None:
        for message in self._playback.latched_before():
            self._outlets.publish(message)

    def _publish(self, message: BagMessage) -> None:
        self._outlets.publish(message)
        self._played += 1

    def _end(self) -> None:
        if self._options.loop:
            self._rewind()
            return
        self._control.finish()
        self._outlets.wait_until_delivered(DELIVERY_TIMEOUT_S)
        self._tell()
        self._state.wait_for_all_acked(Duration(seconds=1))
        assert self._bag is not None
        if self._bag.cut_off:
            self.get_logger().warning(
                f'played {self._played} messages, as far as {self._bag.path} goes: '
                f'{self._bag.cut_off}'
            )
        self.finish(0)

    def _rewind(self) -> None:
        self._playback.rewind()
        self._outlets.forget_time()
        self._played = 0

    def _tell(self) -> None:
        self._state.publish(self.state_message())


def main() -> int:
    """Run the node."""
    return run_node(BagPlayerNode)


if __name__ == '__main__':
    raise SystemExit(main())
