"""Plays a bag on the topics it was recorded from."""

import time
from collections.abc import Collection
from functools import partial

from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import ConfigError, ContractError, choose
from osmabench_ros.msg import RunState
from osmabench_ros.ros.messages.message_definitions import hash_of, message_class
from osmabench_ros.ros.messages.poses import stamp_to_message
from osmabench_ros.ros.node.diagnostics import Health, Level
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node
from osmabench_ros.ros.node.run_control import RunControl, serve_run_control
from osmabench_ros.ros.qos import clock_profile, latched_profile, profile_for_playing
from osmabench_ros.sequences.bags.bag import Bag, BagMessage, open_bag
from osmabench_ros.sequences.bags.bag_storage import BagTopic
from osmabench_ros.sequences.bags.playback import Playback, PlaybackSettings, timing_topics


class BagPublishers:
    """A publisher for each chosen topic of a bag (all if empty) that is installed, and a clock."""

    def __init__(self, node: Node, bag: Bag, chosen: Collection[str], *, clock: bool) -> None:
        self._node = node
        self._publishers: dict[str, Publisher] = {}
        # Reasons by topic.
        self.skipped: dict[str, str] = {}
        present = bag.connections_by_topic
        names = [node.resolve_topic_name(name, only_expand=True) for name in chosen]
        for name in names:
            choose(name, present, ConfigError, f'{bag.path} has no topic "{name}"')
        for item in (present[name] for name in names or sorted(present)):
            if clock or item.topic != topics.CLOCK:
                self._add(bag, item)
        self._clock = None
        if clock and topics.CLOCK not in self._publishers:
            self._clock = node.create_publisher(Clock, topics.CLOCK, clock_profile())
        self._timing = timing_topics(bag, self._publishers)
        # The time on the clock; -1 at the start of the bag.
        self.newest_ns = -1

    @property
    def topics(self) -> frozenset[str]:
        """Names of the topics that are played."""
        return frozenset(self._publishers)

    def publish(self, message: BagMessage) -> None:
        """Publish a message, and the clock before it if its stamp is the newest."""
        if self._clock is not None:
            self._tick(message)
        self._publishers[message.topic].publish(message.data)

    def wait_until_delivered(self) -> None:
        """Wait until reliable subscribers have received everything, or a timeout."""
        for publisher in self._publishers.values():
            publisher.wait_for_all_acked(DELIVERY_TIMEOUT)

    def _add(self, bag: Bag, item: BagTopic) -> None:
        try:
            kind = message_class(item.message_type)
            installed = hash_of(item.message_type)
            recorded = bag.types.type_hash(item.message_type) if item.definition else installed
            if installed and recorded != installed:
                why = f'{item.message_type} was recorded in another version than installed'
                raise ContractError(why)
        except ContractError as error:
            self.skipped[item.topic] = str(error)
            self._node.get_logger().warning(f'{item.topic} is not played: {error}')
            return
        self._publishers[item.topic] = self._node.create_publisher(
            kind, item.topic, profile_for_playing(item.topic, item.qos)
        )

    def _tick(self, message: BagMessage) -> None:
        stamp_ns = message.header_stamp_ns if message.topic in self._timing else None
        if stamp_ns is not None and stamp_ns > self.newest_ns:
            self.newest_ns = stamp_ns
            assert self._clock is not None
            self._clock.publish(Clock(clock=stamp_to_message(stamp_ns)))


STATE_TOPIC = '~/state'
# Until the next look, where something is due already.
TICK_S = 0.0001
# For messages that are due, before services are looked after again.
BATCH_S = 0.02
STATE_PERIOD_S = 0.2
DELIVERY_TIMEOUT = Duration(seconds=5)


class BagPlayerNode(BenchmarkNode[PlaybackSettings]):
    """Publishes messages without deserialising them when their time comes; counts messages."""

    def __init__(self) -> None:
        super().__init__('bag_player', PlaybackSettings)
        self._control = RunControl()
        self._bag: Bag | None = None
        self._played = 0

    def configure(self) -> None:
        """Open the bag and create its publishers."""
        value = self.settings
        self._control = RunControl(start_paused=value.paused)
        self._played = self._total = 0
        self._ready_s = 0.0
        self._stepping = False
        bag = self._bag = open_bag(self.required('bag'), value.msg_paths)
        self._outlets = BagPublishers(self, bag, value.topics, clock=value.clock)
        if not self._outlets.topics:
            why = 'no type of its topics is installed here; build their packages'
            raise ConfigError(f'{bag.path}: {why}')
        counts = bag.connections_by_topic
        self._total = sum(counts[name].message_count for name in self._outlets.topics)
        self._playback = Playback(bag, self._outlets.topics, value)
        self._state = self.create_publisher(RunState, STATE_TOPIC, latched_profile())
        serve_run_control(self, self._control, self.follow_command, self.state_message)
        if bag.cut_off:
            self.get_logger().warning(f'{bag.path} is not complete: {bag.cut_off}')
        self._timer = self.create_timer(TICK_S, self.guarded(self._tick))
        self.create_timer(STATE_PERIOD_S, self.guarded(self._publish_state))

    def activate(self) -> None:
        """Start to play after subscribers had time to discover this node."""
        self._control.active = True
        self._ready_s = time.monotonic() + self.settings.delay_s
        self._look_again(0.0)
        assert self._bag is not None
        self.get_logger().info(
            f'playing {self._bag.path}: {self._total} messages, {self._playback.length_s:.1f} s'
        )

    def deactivate(self) -> None:
        """Stop the clock of the playback."""
        self._control.active = False
        self._playback.halt()

    def cleanup(self) -> None:
        """Close the bag."""
        bag, self._bag = self._bag, None
        if bag is not None:
            bag.close()

    def health(self) -> Health:
        """Return the progress of the playback."""
        cut_off, played = self._cut_off, {'messages': self._played}
        level = Level.WARN if cut_off else Level.OK
        return Health(level, cut_off or self._control.phase.name.lower(), played)

    @property
    def _cut_off(self) -> str:
        return self._bag.cut_off if self._bag is not None else ''

    def follow_command(self, name: str) -> None:
        """Play on, step, go back to the start, or stop the clock, as a service has asked."""
        if name == topics.RESET_RUN:
            self._rewind()
        elif name != topics.PAUSE_RUN:
            self._stepping = name == topics.STEP_RUN
        if name in (topics.START_RUN, topics.PAUSE_RUN):
            self._playback.halt()
        self._look_again(0.0)
        if name != topics.STEP_RUN:
            self._publish_state()

    def state_message(self) -> RunState:
        """Return the state of the playback, with position and error."""
        text = f'{self._playback.position_s:.2f} of {self._playback.length_s:.2f} s'
        if self._cut_off:
            text += f'; the bag is not complete: {self._cut_off}'
        return RunState(
            state=int(self._control.phase),
            frames_published=self._played,
            frames_total=self._total,
            message=text,
        )

    def _tick(self) -> None:
        now_s = time.monotonic()
        if now_s < self._ready_s:
            self._look_again(self._ready_s - now_s)
            return
        self._control.match()
        if self._control.may_publish:
            if self._played == 0:
                for message in self._playback.latched_before():
                    self._outlets.publish(message)
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
        while (message := self._playback.due(time.monotonic())) is not None:
            self._publish(message)
            if time.monotonic() - now_s > BATCH_S:
                return

    def _play_frame(self) -> None:
        for message in self._playback.step():
            self._publish(message)
        self._control.count_frame()
        if self._control.end_steps():
            self._publish_state()

    def _publish(self, message: BagMessage) -> None:
        self._outlets.publish(message)
        self._played += 1

    def _end(self) -> None:
        if self.settings.loop:
            self._rewind()
            return
        self._control.finish()
        self._outlets.wait_until_delivered()
        self._publish_state()
        self._state.wait_for_all_acked(Duration(seconds=1))
        assert self._bag is not None
        if self._bag.cut_off:
            played = f'played {self._played} messages, as far as {self._bag.path} goes'
            self.get_logger().warning(f'{played}: {self._bag.cut_off}')
        self.finish(0)

    def _rewind(self) -> None:
        self._playback.rewind()
        self._outlets.newest_ns = -1
        self._played = 0

    def _publish_state(self) -> None:
        self._state.publish(self.state_message())


main = partial(run_node, BagPlayerNode)

if __name__ == '__main__':
    raise SystemExit(main())
