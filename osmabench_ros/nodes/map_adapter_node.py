"""Takes the map of a stack that knows nothing of this package, and publishes it as ours."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from sensor_msgs.msg import CameraInfo

from osmabench_ros.base.attentive_clock import AttentiveClock
from osmabench_ros.base.limits.documents import parse_mapping
from osmabench_ros.errors import (
    ConfigError,
    MissingDependencyError,
    OsmabenchError,
    ParticipantError,
)
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.registry import import_map
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.kinds import READERS, frame_id_of, header_of
from osmabench_ros.maps.topics.options import TopicOptions
from osmabench_ros.msg import LabelInfo, RunInfo, RunState
from osmabench_ros.ros import services, topics
from osmabench_ros.ros.checked_subscription import create_checked_subscription
from osmabench_ros.ros.diagnostics import Health, Level
from osmabench_ros.ros.finish_call import FinishCall
from osmabench_ros.ros.interfaces import interface_class
from osmabench_ros.ros.label_messages import label_set_from_message
from osmabench_ros.ros.lifecycle import BenchmarkNode
from osmabench_ros.ros.map_frame import MapFrame
from osmabench_ros.ros.map_messages import MAX_PAYLOAD_BYTES, MapPublisher
from osmabench_ros.ros.map_settling import MapSettling, Outcome
from osmabench_ros.ros.matched_subscription import MatchedSubscription
from osmabench_ros.ros.message_digest import content_digest
from osmabench_ros.ros.node_process import run_node
from osmabench_ros.ros.parameters import ParameterSpec
from osmabench_ros.ros.qos import latched_profile, observer_profile
from osmabench_ros.ros.run_messages import check_run_info
from osmabench_ros.ros.stack_work import StackWork
from osmabench_ros.ros.stamps import stamp_from_message
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.srv import ControlRun

PARAMETERS = (
    ParameterSpec('method', 'unknown', 'Name of the mapping method, for the report.'),
    ParameterSpec('map_topic', '', "The stack's topic with the map."),
    ParameterSpec('map_type', 'sensor_msgs/msg/PointCloud2', 'Its type.', choices=tuple(READERS)),
    ParameterSpec('map_file', '', 'A file that the stack writes, instead of a topic.'),
    ParameterSpec('importer', '', 'Who reads that file; see osmabench map import --help.'),
    ParameterSpec('finish_service', '', 'Called after the last frame; empty for none.'),
    ParameterSpec('finish_type', 'std_srvs/srv/Empty', 'Type of that service.'),
    ParameterSpec('finish_request', '{}', 'Its request, a YAML mapping.'),
    ParameterSpec(
        'settle_s', 3.0, 'Seconds without a change of the map, or work on it.', 0.0, 3600.0
    ),
    ParameterSpec(
        'settle_timeout_s',
        600.0,
        'Longest wait after the last frame; a map that still changes then is partial.',
        0.1,
        86400.0,
    ),
    ParameterSpec('map_timeout_s', 120.0, 'Longest silence without a map, seconds.', 0.1, 86400.0),
    ParameterSpec(
        'watch_processes', False, 'What was started beside this node is the stack, and may work.'
    ),
    ParameterSpec('count_frames', True, 'Tell frames in the map by its stamps.'),
    ParameterSpec(
        'map_frame_is_world', False, 'Take the map frame for the world where TF says nothing.'
    ),
    ParameterSpec(
        'max_map_bytes', MAX_PAYLOAD_BYTES, 'Largest map message that is accepted.', 1, 2**40
    ),
)

PERIOD_S = 0.2


class MapAdapterNode(BenchmarkNode):
    """Keeps the newest map of the stack; once the run is over, publishes it in the world frame.

    The run is over when the bridge has published its last frame, or, where there is no bridge,
    when the service `finish_map` is called. Then the stack may still work through what it got: the
    map is taken once it has settled, see `MapSettling`.
    """

    def __init__(self) -> None:
        super().__init__('mapper', PARAMETERS)
        self._trouble = ''

    def configure(self) -> None:
        """Subscribe to the run; to the stack as soon as it publishes."""
        self._scene = self._condition = ''
        self._labels: LabelSet | None = None
        self._finish: FinishCall | None = None
        self._steady, self._work = AttentiveClock(), StackWork()
        self._start_over()
        self._finish_request = _request_from_yaml(self.parameter['finish_request'])
        self._frame = MapFrame(
            self,
            self.parameter['map_topic'],
            is_world=self.parameter['map_frame_is_world'],
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
        self.create_service(ControlRun, services.FINISH_MAP, self._on_finish_map)
        self.create_timer(PERIOD_S, self.guarded(self._tick))

    def health(self) -> Health:
        """Tell whether the frame of the map is known."""
        return Health(Level.WARN, self._trouble) if self._trouble else super().health()

    def _start_over(self) -> None:
        """Wait for the map of a run that begins."""
        value = self.parameter
        self._newest: Any = None
        self._settling = MapSettling(value['settle_s'], value['settle_timeout_s'])
        self._published = self._bridge_is_done = False
        if self._finish is not None:
            self._finish.close()
        self._finish = None

    def _subscribe_to_stack(self) -> MatchedSubscription | None:
        value = self.parameter
        if bool(value['map_topic']) == bool(value['map_file']):
            raise ConfigError('node mapper: set one of the parameters "map_topic" and "map_file"')
        if value['map_file']:
            return None
        kind = interface_class(value['map_type'])
        if kind is None:
            raise MissingDependencyError(
                f'messages of type {value["map_type"]} are not installed; build or source the '
                'package that holds them'
            )
        return MatchedSubscription(
            self, kind, value['map_type'], value['map_topic'], self._on_map, value['max_map_bytes']
        )

    def _on_run_info(self, message: RunInfo) -> None:
        check_run_info(message)
        self._scene, self._condition = message.scene, message.condition

    def _on_labels(self, message: LabelInfo) -> None:
        self._labels = label_set_from_message(message, topics.LABEL_INFO)

    def _on_camera_info(self, message: CameraInfo) -> None:
        self._settling.frame(stamp_from_message(message.header.stamp), self._steady.now_s())

    def _on_map(self, message: Any) -> None:
        # Converting every update would slow the stack's own machine for nothing.
        self._newest, header = message, header_of(message)
        stamp_ns = -1 if header is None else stamp_from_message(header.stamp)
        self._settling.message(stamp_ns, content_digest(message), self._steady.now_s())

    def _on_run_state(self, message: RunState) -> None:
        if message.state == RunState.STATE_FINISHED:
            self._bridge_is_done = True
            if not self._settling.over:
                self._end()
        elif self._bridge_is_done and message.state != RunState.STATE_FAILED:
            # The run was reset: what the stack publishes from now on is another map.
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
            # Whoever called gets the reason, too; raised, it would end the process untold.
            response.error_code, response.error_msg = response.ERROR_FAILED, str(error)
            self.fail(error)
        return response

    def _end(self) -> None:
        value = self.parameter
        self._settling.end(self._steady.now_s())
        if value['finish_service']:
            self._finish = FinishCall(
                self,
                value['finish_service'],
                value['finish_type'],
                self._finish_request,
                value['map_timeout_s'],
            )

    def _tick(self) -> None:
        now_s = self._steady.now_s()
        if self._subscription is not None:
            self._subscription.look()
        if self._newest is not None:
            self._trouble = self._frame.look(frame_id_of(self._newest) or topics.WORLD_FRAME)
        if self.parameter['watch_processes'] and self._work.busy(now_s):
            self._settling.work(now_s)
        outcome = self._settling.outcome(now_s)
        if self._published or outcome is Outcome.CHANGES or not self._completed(now_s):
            return
        if self._subscription is None:
            self._publish(self._from_file(), outcome)
        elif self._newest is not None:
            self._publish(self._from_message(), outcome)
        elif (
            outcome is Outcome.CUT_OFF
            or self._settling.silent_s(now_s) > self.parameter['map_timeout_s']
        ):
            raise ParticipantError(self._silence())

    def _completed(self, now_s: float) -> bool:
        """Have the stack complete its map, now that it is done with the frames."""
        if self._finish is None or self._finish.answered:
            return True
        if self._finish.done():
            # What it publishes now has to settle, too.
            self._settling.end(now_s)
        return self._finish.answered and self._subscription is None

    def _silence(self) -> str:
        topic = self.parameter['map_topic']
        heard = self._subscription is not None and self._subscription.matched
        why = 'it is published, but no message came' if heard else 'nobody publishes it'
        return f'no map on topic "{topic}": {why}. Look at the log of the stack'

    def _from_file(self) -> SemanticMap:
        options = ImportOptions(
            label_set=self._labels, scene=self._scene, condition=self._condition
        )
        return import_map(self.parameter['importer'], Path(self.parameter['map_file']), options)

    def _from_message(self) -> SemanticMap:
        value = self.parameter
        options = TopicOptions(value['method'], self._labels, self._scene, self._condition)
        made = READERS[value['map_type']](self._newest, value['map_topic'], options)
        return self._frame.placed(made)

    def _publish(self, semantic_map: SemanticMap, outcome: Outcome) -> None:
        settling, header = self._settling, semantic_map.header
        whole = outcome is Outcome.SETTLED
        why, counted = '' if whole else settling.why_cut_off(self._steady.now_s()), ''
        provenance = header.provenance
        if self.parameter['count_frames']:
            counted = settling.counted()
            provenance = dataclasses.replace(provenance, frames_used=settling.frames_used)
        header = dataclasses.replace(
            header,
            provenance=provenance,
            complete=header.complete and whole,
            remark='; '.join(filter(None, (why, counted))),
        )
        made = dataclasses.replace(semantic_map, header=header)
        self._maps.publish(made, is_final=True)
        self._published = True
        self.get_logger().info(f'published the map of {self.parameter["method"]}')


def _request_from_yaml(text: str) -> dict[str, Any]:
    return parse_mapping(text, 'node mapper: parameter "finish_request"', ConfigError)


def main() -> int:
    """Run the node."""
    return run_node(MapAdapterNode)


if __name__ == '__main__':
    raise SystemExit(main())
