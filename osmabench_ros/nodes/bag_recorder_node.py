"""Records topics to a bag while they are published."""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import CONTRACT, TF_STATIC, Delivery
from osmabench_ros.errors import ContractError, OsmabenchError, RunError
from osmabench_ros.msg import RunState
from osmabench_ros.ros import qos
from osmabench_ros.ros.messages import message_definitions
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.ros.node.diagnostics import Health, Level
from osmabench_ros.ros.node.frame_receiver import Acknowledger
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node
from osmabench_ros.ros.qos import deserialize_checked
from osmabench_ros.sequences.bags import recording_report
from osmabench_ros.sequences.bags.bag_types import stamp_at
from osmabench_ros.sequences.bags.mcap_recording import BackgroundWriter, McapRecording

HEADER_PLACE = 4
# Every publisher of static transforms has its own, and a subscriber cannot separate them.
TF_STATIC_REPEATED = 100

# Gets topic, time of receipt, header stamp (or that time) and data.
Sink = Callable[[str, int, int, bytes], None]


@dataclass(frozen=True)
class TopicChoice:
    """Which topics to record: absolute names, or all not hidden; `exclude` is searched for."""

    names: tuple[str, ...]
    every: bool = False
    exclude: str = ''

    def includes(self, topic: str) -> bool:
        """Return whether a topic is to be recorded."""
        hidden = any(part.startswith('_') for part in topic.split('/'))
        chosen = topic in self.names or (self.every and not hidden)
        return chosen and not (self.exclude and re.search(self.exclude, topic))


def steady_time_ns() -> Callable[[], int]:
    """Return a clock that starts at system time and stays steady when that is set."""
    begin_ns = time.time_ns() - time.monotonic_ns()
    return lambda: begin_ns + time.monotonic_ns()


class TopicRecorder:
    """Subscribes to chosen topics, also to those that come later; announces, then hands on."""

    def __init__(
        self,
        node: Node,
        choice: TopicChoice,
        announce: Callable[[recording_report.RecordedTopic], None],
        sink: Sink,
    ) -> None:
        self._node, self._choice = node, choice
        self._announce, self._sink = announce, sink
        self._clock_ns = steady_time_ns()
        self.topics: dict[str, recording_report.RecordedTopic] = {}
        self.received: Counter[str] = Counter()
        # Messages that the middleware says it lost.
        self.lost: Counter[str] = Counter()
        # Reasons by topic.
        self.skipped: dict[str, str] = {}

    def subscribe(self, topic: str, kind: str, profile: QoSProfile, *, latched: bool) -> None:
        """Subscribe to a topic of the contract, whether or not it exists yet."""
        if topic not in self.topics and self._choice.includes(topic):
            self._subscribe(topic, kind, profile, repeat=1 if latched else 0)

    def discover(self) -> None:
        """Subscribe to new topics, and note new publishers."""
        for topic, kinds in self._node.get_topic_names_and_types():
            if not self._choice.includes(topic) or topic in self.skipped:
                continue
            infos = self._node.get_publishers_info_by_topic(topic)
            profiles = [info.qos_profile for info in infos]
            if not profiles:
                continue
            try:
                if topic not in self.topics and len(kinds) > 1:
                    raise ContractError(f'it has several types: {", ".join(kinds)}')
                if topic not in self.topics:
                    self._subscribe(topic, kinds[0], qos.profile_for_recording(profiles))
                self._update(topic, profiles)
            except ContractError as error:
                self.skipped[topic] = str(error)
                self._node.get_logger().warning(f'{topic} is not recorded: {error}')

    def _subscribe(self, topic: str, kind: str, profile: QoSProfile, *, repeat: int = 0) -> None:
        text = message_definitions.definition_of(kind)
        type_hash = message_definitions.hash_of(kind)
        recorded = recording_report.RecordedTopic(topic, kind, 0, (), text, type_hash, repeat)
        self.topics[topic] = recorded
        self._announce(recorded)
        self._node.create_subscription(
            message_definitions.message_class(kind),
            topic,
            self._listener(topic, stamped=message_definitions.has_header(kind)),
            profile,
            raw=True,
            event_callbacks=SubscriptionEventCallbacks(
                message_lost=lambda event: self._count_lost(topic, event),
                incompatible_qos=lambda _event: self._warn(topic),
            ),
        )
        self._node.get_logger().info(f'recording {topic} ({kind})')

    def _listener(self, topic: str, *, stamped: bool) -> Callable[[bytes], None]:
        def on_message(data: bytes) -> None:
            log_ns = self._clock_ns()
            stamp_ns = stamp_at(data, HEADER_PLACE) if stamped else None
            self.received[topic] += 1
            # MCAP has no negative times.
            publish_ns = stamp_ns if stamp_ns is not None and stamp_ns >= 0 else log_ns
            self._sink(topic, log_ns, publish_ns, data)

        guard: Callable[[Any], Any] = getattr(self._node, 'guarded', lambda function: function)
        return guard(on_message)  # type: ignore[no-any-return]

    def _update(self, topic: str, profiles: Sequence[QoSProfile]) -> None:
        """Update the QoS of the publishers, including those that left."""
        before = self.topics[topic]
        offered = tuple(dict.fromkeys([*before.qos, *map(qos.offered_from_profile, profiles)]))
        if offered == before.qos:
            return
        latched = qos.count_repeated_messages(offered)
        repeat = TF_STATIC_REPEATED if topic == TF_STATIC else max(before.repeat, latched)
        self.topics[topic] = replace(before, qos=offered, repeat=repeat)
        self._announce(self.topics[topic])

    def _count_lost(self, topic: str, event: Any) -> None:
        count = event.total_count_change
        self.lost[topic] += count
        self._node.get_logger().warning(f'{topic}: the middleware lost {count} messages')

    def _warn(self, topic: str) -> None:
        self._node.get_logger().warning(
            f'{topic}: a publisher offers less than this recorder asks for; '
            'its messages are not recorded. Start the recorder after that publisher'
        )


PROFILES = {
    Delivery.FRAME: qos.frame_profile(lockstep=True),
    # The contract keeps one, which several states of a run between two looks would overtake.
    Delivery.LATCHED: qos.profile_for_recording([qos.latched_profile()]),
    Delivery.LOSSLESS: qos.lossless_profile(),
    Delivery.CLOCK: qos.profile_for_recording([qos.clock_profile()]),
}
BESIDES = (topics.TF, topics.TF_STATIC, topics.DIAGNOSTICS)
REPORT_PERIOD_S = 1.0
WATCH_PERIOD_S = 0.1


class BagRecorderNode(BenchmarkNode[recording_report.RecordingSettings]):
    """Records serialised messages in a thread, and counts the lost ones."""

    def __init__(self) -> None:
        super().__init__('bag_recorder', recording_report.RecordingSettings)
        self._writer: BackgroundWriter | None = None
        self._active = False
        self._closing_error: OsmabenchError | None = None

    def configure(self) -> None:
        """Create the bag and subscribe."""
        value = self.settings
        self._directory = self.required('bag_directory').absolute()
        names = list(value.topics)
        if not names and not value.all_topics:
            names = [item.name for item in CONTRACT] + list(BESIDES)
        resolved = (str(self.resolve_topic_name(name)) for name in (*names, *value.more_topics))
        choice = TopicChoice(tuple(resolved), value.all_topics, value.exclude)
        self._recording = McapRecording(self._directory, value, os.environ.get('ROS_DISTRO', ''))
        room, waits = value.queue_bytes, value.acks
        self._writer = BackgroundWriter(self._recording, room, wait_when_full=waits)
        self._frame_topics = {str(self.resolve_topic_name(name)) for name in topics.FRAME_TOPICS}
        self._run_state = str(self.resolve_topic_name(topics.RUN_STATE))
        self._ledger = recording_report.FrameLedger(self.resolve_topic_name(topics.CAMERA_POSE))
        self.recorder = TopicRecorder(self, choice, self._recording.add_topic, self._on_message)
        if value.acks:
            self._acks = Acknowledger(self, self.get_name())
            # In lockstep the bridge does not wait for later subscriptions.
            for item in CONTRACT:
                self.recorder.subscribe(
                    str(self.resolve_topic_name(item.name)),
                    item.message_type,
                    PROFILES[item.delivery],
                    latched=item.delivery is Delivery.LATCHED,
                )
        self._started_s = time.monotonic()
        self.create_timer(WATCH_PERIOD_S, self.guarded(self.recorder.discover))
        self.create_timer(WATCH_PERIOD_S, self.guarded(self._watch))
        self.create_timer(REPORT_PERIOD_S, self.guarded(self._write_report))

    def activate(self) -> None:
        """Record from now on."""
        self._active = True
        self.get_logger().info(f'recording to {self._directory}')

    def deactivate(self) -> None:
        """Ignore messages until activated again."""
        self._active = False

    def cleanup(self) -> None:
        """Finish the bag and log its content."""
        writer, self._active = self._writer, False
        if writer is None:
            return
        try:
            writer.close()
        except OsmabenchError as error:
            self._closing_error = error
            self.fail(error)
        report = self.report(finished=True)
        self._writer = None
        try:
            recording_report.write_report(report, self._directory)
        except RunError as error:
            self.get_logger().error(f'{self._directory}: no report: {error}')
        self.get_logger().info(report.summary())

    def health(self) -> Health:
        """Return the counts of messages, and whether any are missing."""
        if self._writer is None:
            return super().health()
        report = self.report()
        level = Level.ERROR if report.error else Level.WARN if report.lost else Level.OK
        values = {
            'messages': report.messages,
            'bytes': report.bytes_written,
            'lost': report.lost,
            'queue_peak_bytes': report.queue_peak_bytes,
        }
        return Health(level, report.error or 'recording', values)

    def _on_message(self, topic: str, log_ns: int, publish_ns: int, data: bytes) -> None:
        if not self._active or self._writer is None:
            return
        taken = self._writer.put(topic, log_ns, publish_ns, data)
        if topic in self._frame_topics and taken:
            if self._ledger.receive(topic, publish_ns, time.monotonic()):
                self._acknowledge(publish_ns)
        elif topic == self._run_state:
            self._take_run_state(data)

    def _take_run_state(self, data: bytes) -> None:
        if self.recorder.topics[self._run_state].message_type != topics.TYPES[topics.RUN_STATE]:
            return
        try:
            state = deserialize_checked(data, RunState, self._run_state)
        except ContractError as error:
            # It is in the bag all the same; frames are counted by their stamps then.
            self.get_logger().warning(str(error), once=True)
            return
        self._ledger.run_state(state.frames_published, stamp_from_message(state.header.stamp))

    def _write_report(self) -> None:
        recording_report.write_report(self.report(), self._directory)

    def _acknowledge(self, stamp_ns: int) -> None:
        if self.settings.acks:
            self._acks.acknowledge(stamp_ns, mapped=False)

    def _watch(self) -> None:
        """End if writing has failed; complete frames of which some topics have no publisher."""
        assert self._writer is not None
        if self._writer.error is not None:
            raise self._writer.error
        self._ledger.expect([name for name in self._frame_topics if self.count_publishers(name)])
        for stamp_ns in self._ledger.settle(time.monotonic()):
            self._acknowledge(stamp_ns)

    def report(self, *, finished: bool = False) -> recording_report.RecordingReport:
        """Return the report of the recording so far."""
        writer = self._writer
        recorder = self.recorder
        counts = self._recording.counts
        assert writer is not None
        expected, counted_by, missed = self._ledger.losses()
        error = writer.error or self._closing_error
        return recording_report.RecordingReport(
            complete=finished and error is None,
            error=str(error or ''),
            duration_s=time.monotonic() - self._started_s,
            bytes_written=self._recording.bytes_written,
            files=len(self._recording.files) + (0 if finished else 1),
            topics=tuple(
                recording_report.TopicCount(
                    name,
                    item.message_type,
                    received=recorder.received[name],
                    written=counts.get(name, 0),
                    dropped=writer.dropped[name],
                    lost_by_middleware=recorder.lost[name],
                    frames_missed=missed.get(name),
                )
                for name, item in sorted(recorder.topics.items())
            ),
            frames_expected=expected,
            frames_counted_by=counted_by,
            skipped=dict(recorder.skipped),
            queue_peak_bytes=writer.peak_bytes,
        )


main = partial(run_node, BagRecorderNode)

if __name__ == '__main__':
    raise SystemExit(main())
