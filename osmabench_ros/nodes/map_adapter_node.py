"""Publishes the map of a third-party stack as the map of a run."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

from sensor_msgs.msg import CameraInfo

from osmabench_ros.base import contract as topics
from osmabench_ros.base.processes import AttentiveClock
from osmabench_ros.errors import (
    ConfigError,
    MissingDependencyError,
    OsmabenchError,
    ParticipantError,
)
from osmabench_ros.maps.importer import ImportOptions, TopicOptions, import_map
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.kinds import READERS, frame_id_of, header_of
from osmabench_ros.msg import LabelInfo, RunInfo, RunState
from osmabench_ros.nodes.map_adapter.map_settling import MapSettling, SettlingOutcome
from osmabench_ros.nodes.map_adapter.stack_connection import (
    FinishCall,
    MapFrame,
    MatchedSubscription,
    content_digest,
)
from osmabench_ros.ros.messages.evaluation_messages import check_run_info
from osmabench_ros.ros.messages.images import label_set_from_message
from osmabench_ros.ros.messages.map_messages import MapPublisher
from osmabench_ros.ros.messages.message_definitions import interface_class
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.ros.node.diagnostics import Health, Level
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node
from osmabench_ros.ros.node.settings import MapAdapterSettings
from osmabench_ros.ros.wire.checked_subscription import create_checked_subscription
from osmabench_ros.ros.wire.qos import latched_profile, observer_profile
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.srv import ControlRun

PERIOD_S = 0.2


class MapAdapterNode(BenchmarkNode[MapAdapterSettings]):
    """Keeps the newest map of the stack; once the run is over, publishes it in the world frame.

    The run is over when the bridge has published its last frame, or, where there is no bridge,
    when the service `finish_map` is called. Then the stack may still work on frames: the
    map is taken once it has settled, see `MapSettling`.
    """

    def __init__(self) -> None:
        super().__init__('mapper', MapAdapterSettings)
        self._trouble = ''

    def configure(self) -> None:
        """Subscribe to the run now, and to the stack as soon as it publishes."""
        self.scene = self._condition = self._trouble = ''
        self.labels: LabelSet | None = None
        self._finish: FinishCall | None = None
        self._steady = AttentiveClock()
        self._start_over()
        self.frame = MapFrame(
            self, self.settings.map_topic, is_world=self.settings.map_frame_is_world
        )
        self._maps = MapPublisher(self, self.get_name())
        self._subscription = self._subscribe_to_stack()
        for message_type, topic, callback in (
            (RunInfo, topics.RUN_INFO, self._on_run_info),
            (LabelInfo, topics.LABEL_INFO, self._on_labels),
            (RunState, topics.RUN_STATE, self._on_run_state),
        ):
            create_checked_subscription(self, message_type, topic, callback, latched_profile())
        # Best effort: a lockstep bridge must not wait for who only looks at stamps.
        create_checked_subscription(
            self, CameraInfo, topics.COLOR_INFO, self._on_camera_info, observer_profile()
        )
        self.create_service(ControlRun, topics.FINISH_MAP, self._on_finish_map)
        self.create_timer(PERIOD_S, self.guarded(self._tick))

    def health(self) -> Health:
        """Return whether the frame of the map is known."""
        return Health(Level.WARN, self._trouble) if self._trouble else super().health()

    def _start_over(self) -> None:
        """Reset for the map of a new run."""
        value = self.settings
        self.newest: Any = None
        self._settling = MapSettling(value.settling.settle_s, value.settling.settle_timeout_s)
        self._published = self._bridge_is_done = False
        if self._finish is not None:
            self._finish.close()
        self._finish = None

    def _subscribe_to_stack(self) -> MatchedSubscription | None:
        value = self.settings
        if bool(value.map_topic) == (value.map_file is not None):
            raise ConfigError('node mapper: set one of the parameters "map_topic" and "map_file"')
        if value.map_file is not None:
            return None
        kind = interface_class(value.map_type)
        if kind is None:
            raise MissingDependencyError(
                f'messages of type {value.map_type} are not installed; build or source the '
                'package that holds them'
            )
        return MatchedSubscription(self, kind, value.map_type, value.map_topic, self._on_map)

    def _on_run_info(self, message: RunInfo) -> None:
        check_run_info(message)
        self.scene, self._condition = message.scene, message.condition

    def _on_labels(self, message: LabelInfo) -> None:
        self.labels = label_set_from_message(message, topics.LABEL_INFO)

    def _on_camera_info(self, message: CameraInfo) -> None:
        self._settling.frame(stamp_from_message(message.header.stamp), self._steady.now_s())

    def _on_map(self, message: Any) -> None:
        # Converting every update would slow the stack's own machine for nothing.
        self.newest, header = message, header_of(message)
        stamp_ns = -1 if header is None else stamp_from_message(header.stamp)
        self._settling.message(stamp_ns, content_digest(message), self._steady.now_s())

    def _on_run_state(self, message: RunState) -> None:
        if message.state == RunState.STATE_FINISHED:
            self._bridge_is_done = True
            if not self._settling.over:
                last = stamp_from_message(message.header.stamp)
                self._end(last if message.frames_published else None)
        elif self._bridge_is_done and message.state != RunState.STATE_FAILED:
            # The run was reset: the stack publishes another map from now on.
            self._start_over()

    def _on_finish_map(
        self, _request: ControlRun.Request, response: ControlRun.Response
    ) -> ControlRun.Response:
        if not self.active or self._settling.over:
            response.error_code = ControlRun.Response.ERROR_WRONG_STATE
            response.error_msg = 'the node is not active' if not self.active else 'already called'
            return response
        try:
            self._end()
        except OsmabenchError as error:
            # The caller gets the reason too; if raised, the process would end without a response.
            response.error_code, response.error_msg = response.ERROR_FAILED, str(error)
            self.fail(error)
        return response

    def _end(self, last_ns: int | None = None) -> None:
        value = self.settings
        self._settling.end(self._steady.now_s(), last_ns)
        if value.finish_service:
            self._finish = FinishCall(
                self,
                value.finish_service,
                value.finish_type,
                value.finish_request,
                value.map_timeout_s,
            )

    def _tick(self) -> None:
        now_s = self._steady.now_s()
        if self._subscription is not None:
            self._subscription.look()
        if self.newest is not None:
            self._trouble = self.frame.look(frame_id_of(self.newest) or topics.WORLD_FRAME)
        outcome = self._settling.outcome(now_s)
        if self._published or outcome is SettlingOutcome.CHANGES or not self._completed(now_s):
            return
        if self.settings.map_file is not None:
            self._publish(self._from_file(self.settings.map_file), outcome)
        elif self.newest is not None:
            self._publish(self._from_message(), outcome)
        elif (
            outcome is SettlingOutcome.CUT_OFF
            or self._settling.silent_s(now_s) > self.settings.map_timeout_s
        ):
            raise ParticipantError(self._silence())

    def _completed(self, now_s: float) -> bool:
        """Ask the stack to complete its map once it has processed all frames."""
        if self._finish is None or self._finish.answered:
            return True
        if self._finish.done():
            # The map that it publishes now has to settle, too.
            self._settling.end(now_s)
        return self._finish.answered and self._subscription is None

    def _silence(self) -> str:
        topic = self.settings.map_topic
        matched = self._subscription is not None and self._subscription.matched
        why = 'it is published, but no message came' if matched else 'no node publishes it'
        return f'no map on topic "{topic}": {why}. Look at the log of the stack'

    def _from_file(self, file: Path) -> SemanticMap:
        options = ImportOptions(label_set=self.labels, scene=self.scene, condition=self._condition)
        return import_map(self.settings.importer, file, options)

    def _from_message(self) -> SemanticMap:
        value = self.settings
        options = TopicOptions(value.method, self.labels, self.scene, self._condition)
        return self.frame.placed(READERS[value.map_type](self.newest, value.map_topic, options))

    def _publish(self, semantic_map: SemanticMap, outcome: SettlingOutcome) -> None:
        settling, header = self._settling, semantic_map.header
        whole = outcome is SettlingOutcome.SETTLED
        why, counted = '' if whole else settling.why_cut_off(self._steady.now_s()), ''
        provenance = header.provenance
        if self.settings.count_frames:
            counted = settling.counted()
            provenance = dataclasses.replace(provenance, frames_used=settling.frames_used)
        header = dataclasses.replace(
            header,
            provenance=provenance,
            complete=header.complete and whole,
            remark='; '.join(filter(None, (why, counted))),
        )
        self._maps.publish(dataclasses.replace(semantic_map, header=header), is_final=True)
        self._published = True
        self.get_logger().info(f'published the map of {self.settings.method}')


main = partial(run_node, MapAdapterNode)

if __name__ == '__main__':
    raise SystemExit(main())
