"""Publishes the map of a third-party stack, once it has settled, as the map of a run."""

import dataclasses
from enum import Enum
from functools import partial
from typing import Any

from sensor_msgs.msg import CameraInfo

from osmabench_ros import errors
from osmabench_ros.base import contract as topics
from osmabench_ros.base.processes import AttentiveClock
from osmabench_ros.maps.importer import ImportOptions, TopicOptions, import_map
from osmabench_ros.maps.map_kinds import READERS, get_frame_id, get_header
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.msg import LabelInfo, RunInfo, RunState
from osmabench_ros.nodes.stack_connection import (
    FinishCall,
    MapFrame,
    MatchedSubscription,
    content_digest,
)
from osmabench_ros.ros.messages.evaluation_messages import check_run_info
from osmabench_ros.ros.messages.images import label_set_from_message
from osmabench_ros.ros.messages.map_messages import MapPublisher
from osmabench_ros.ros.messages.message_definitions import message_class
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.ros.node.diagnostics import Health, Level
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node
from osmabench_ros.ros.node.settings import MapAdapterSettings
from osmabench_ros.ros.qos import observer_profile
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.srv import ControlRun

# A method is waited for so many times as long as it ever took for a change of its map.
PATIENCE = 3.0
MOST_PATIENCE_S = 60.0
PERIOD_S = 0.2


class SettlingOutcome(Enum):
    """Outcome for a map after the last frame."""

    CHANGES = 'changes'
    SETTLED = 'settled'
    CUT_OFF = 'cut off'


class MapSettling:
    """Follows a third-party map until it no longer changes.

    Times are steady seconds. Nothing may have happened for `settle_s`, or, where the stamp of the
    map does not say that the last frame is in it, for `PATIENCE` times the longest wait for a
    change, if longer. A map that still changes `timeout_s` after the last frame is cut off.
    """

    def __init__(self, settle_s: float, timeout_s: float) -> None:
        self._settle_s, self._timeout_s = settle_s, timeout_s
        self._frames: dict[int, int] = {}
        self._stamps: set[int] = set()
        self._newest_ns = self._end_ns = -1
        self._digest = b''
        self._stamps_differ = True
        self._since_s: float | None = None
        self._gap_s = 0.0
        self._changed_s = 0.0
        self._end_s: float | None = None

    @property
    def over(self) -> bool:
        """Whether the last frame was published."""
        return self._end_s is not None

    def frame(self, stamp_ns: int, now_s: float) -> None:
        """Note a published frame."""
        self._frames.setdefault(stamp_ns, len(self._frames))
        if self._since_s is None:
            self._since_s = now_s

    def message(self, stamp_ns: int, digest: bytes, now_s: float) -> None:
        """Note a message with the map; a repeated one is not a change."""
        self._stamps.add(stamp_ns)
        if digest == self._digest:
            return
        # Two maps of one stamp: it is the time of publishing, not of the newest frame in them.
        self._stamps_differ &= stamp_ns != self._newest_ns
        if self._since_s is not None:
            self._gap_s = max(self._gap_s, now_s - self._since_s)
        self._digest, self._newest_ns = digest, stamp_ns
        self._changed_s = self._since_s = now_s

    def end(self, now_s: float, last_ns: int | None = None) -> None:
        """Note that the last frame was published, or the stack was asked to complete its map.

        The last frame, of stamp `last_ns`, may not have come yet: it is another topic.
        """
        if last_ns is not None:
            self.frame(last_ns, now_s)
        self._end_s, self._end_ns = now_s, max(self._frames, default=-1)

    def silent_s(self, now_s: float) -> float:
        """Return the time without map messages since the last frame."""
        return now_s - max(self._end_s or 0.0, self._changed_s)

    def outcome(self, now_s: float) -> SettlingOutcome:
        """Return the outcome so far."""
        if self._end_s is None:
            return SettlingOutcome.CHANGES
        if self._holds_last and max(self._frames) > self._end_ns:
            # Frames go on, as on a robot: what changes since then is of later ones.
            return SettlingOutcome.SETTLED
        if self.silent_s(now_s) >= self._patience_s:
            return SettlingOutcome.SETTLED
        if now_s - self._end_s < self._timeout_s:
            return SettlingOutcome.CHANGES
        return SettlingOutcome.CUT_OFF

    @property
    def _holds_last(self) -> bool:
        known = self._stamps_differ and self._newest_ns in self._frames
        return known and self._newest_ns >= self._end_ns

    @property
    def _patience_s(self) -> float:
        if self._holds_last:
            return self._settle_s
        return max(self._settle_s, min(PATIENCE * self._gap_s, MOST_PATIENCE_S))

    def why_cut_off(self, now_s: float) -> str:
        """Return why the map of the stack was cut off."""
        changed_s = now_s - self._changed_s
        what = f'it had changed {changed_s:.1f} s before' if self._changed_s else 'no map had come'
        return f'cut off {self._timeout_s:g} s after the last frame (settle_timeout_s): {what}'

    @property
    def frames_used(self) -> int:
        """Frames in the map by the stamps of all maps; 0 if the stamps do not show it."""
        found = self._found
        return len(found) if found and len(found) == found[-1] + 1 else 0

    @property
    def _found(self) -> list[int]:
        """Indices of the frames with stamps that occurred in maps."""
        if not self._stamps_differ:
            return []
        return sorted(self._frames[stamp] for stamp in self._stamps & self._frames.keys())

    def counted(self) -> str:
        """Return a remark on frames missing from the map; empty if none is."""
        if used := self.frames_used:
            of_all = f'by the stamps of its maps it mapped {used} of {len(self._frames)} frames'
            return '' if used == len(self._frames) else of_all
        unknown = 'how many frames the stack received and mapped is unknown: '
        if found := self._found:
            return unknown + (
                f'its maps had the stamps of {len(found)} of {len(self._frames)} frames, the '
                f'newest that of frame {found[-1] + 1}'
            )
        return unknown + 'it acknowledges none, and the stamps of its maps are not those of frames'


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
        self.subscribe(RunInfo, topics.RUN_INFO, self._on_run_info)
        self.subscribe(LabelInfo, topics.LABEL_INFO, self._on_labels)
        self.subscribe(RunState, topics.RUN_STATE, self._on_run_state)
        # Best effort: a lockstep bridge must not wait for who only looks at stamps.
        self.subscribe(CameraInfo, topics.COLOR_INFO, self._on_camera_info, observer_profile())
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
            raise errors.ConfigError(
                'node mapper: set one of the parameters "map_topic" and "map_file"'
            )
        if value.map_file is not None:
            return None
        kind = message_class(value.map_type, errors.MissingDependencyError)
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
        self.newest, header = message, get_header(message)
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
        except errors.OsmabenchError as error:
            # The caller gets the reason too; if raised, the process would end without a response.
            response.error_code, response.error_msg = response.ERROR_FAILED, str(error)
            self.fail(error)
        return response

    def _end(self, last_ns: int | None = None) -> None:
        value = self.settings
        self._settling.end(self._steady.now_s(), last_ns)
        if value.finish_service:
            service = value.finish_service, value.finish_type, value.finish_request
            self._finish = FinishCall(self, *service, value.map_timeout_s)

    def _tick(self) -> None:
        now_s = self._steady.now_s()
        if self._subscription is not None:
            self._subscription.try_subscribe()
        if self.newest is not None:
            self._trouble = self.frame.check(get_frame_id(self.newest) or topics.WORLD_FRAME)
        outcome = self._settling.outcome(now_s)
        if self._published or outcome is SettlingOutcome.CHANGES or not self._complete_map(now_s):
            return
        if self.settings.map_file is not None:
            options = ImportOptions(
                label_set=self.labels, scene=self.scene, condition=self._condition
            )
            made = import_map(self.settings.importer, self.settings.map_file, options)
            self._publish(made, outcome)
        elif self.newest is not None:
            value = self.settings
            read = READERS[value.map_type]
            given = TopicOptions(value.method, self.labels, self.scene, self._condition)
            self._publish(
                self.frame.place_in_world(read(self.newest, value.map_topic, given)), outcome
            )
        elif (
            outcome is SettlingOutcome.CUT_OFF
            or self._settling.silent_s(now_s) > self.settings.map_timeout_s
        ):
            matched = self._subscription is not None and self._subscription.matched
            why = 'it is published, but no message came' if matched else 'no node publishes it'
            silent = f'no map on topic "{self.settings.map_topic}": {why}'
            raise errors.ParticipantError(f'{silent}. Look at the log of the stack')

    def _complete_map(self, now_s: float) -> bool:
        """Ask the stack to complete its map once it has processed all frames."""
        if self._finish is None or self._finish.answered:
            return True
        if self._finish.poll():
            # The map that it publishes now has to settle, too.
            self._settling.end(now_s)
        return self._finish.answered and self._subscription is None

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
