"""The runner's own node, which records what happens in a run for the report."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import EVALUATOR
from osmabench_ros.metrics.message_timing import StalenessMeter
from osmabench_ros.msg import FrameAck, RunState, SemanticMap
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.ros.node.diagnostics import complaints_of, values_of
from osmabench_ros.ros.wire.checked_subscription import create_checked_subscription
from osmabench_ros.ros.wire.matched_client import LifecycleClient, command_node
from osmabench_ros.ros.wire.qos import diagnostics_profile, latched_profile, lossless_profile
from osmabench_ros.runs.results.timings import Participation

MAX_MAP_BYTES = 512 * 2**20
"""Largest announcement of a map; it holds the scene graph and no points."""


class RunObserver:
    """Lifecycle client of the nodes; subscribes to state, acknowledgements and maps."""

    def __init__(
        self,
        domain: int,
        start_timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._resources = ExitStack()
        self._node, self.executor = self._resources.enter_context(
            command_node('osmabench_runner', domain=domain)
        )
        self.lifecycle = LifecycleClient(self._node, self.executor, start_timeout_s)
        self.state = RunState()
        self.staleness = StalenessMeter()
        self._clock = clock
        self._acknowledged: dict[str, dict[int, tuple[bool, float]]] = {}
        self._frames_used: dict[str, int] = {}
        self._frames: list[tuple[int, float]] = []
        self.evaluation = 'evaluate'
        """What the evaluator does at the moment, with the share done."""
        self.final_map_from = ''
        """Who announced the final map; empty before."""
        self.complaints: dict[str, str] = {}
        self._ended_s: float | None = None
        self._map_s: float | None = None
        subscribe, latched = partial(create_checked_subscription, self._node), latched_profile()
        subscribe(DiagnosticArray, topics.DIAGNOSTICS, self.on_diagnostics, diagnostics_profile())
        subscribe(FrameAck, topics.FRAME_ACK, self.on_ack, lossless_profile())
        subscribe(RunState, topics.RUN_STATE, self.on_state, latched)
        subscribe(SemanticMap, topics.SEMANTIC_MAP, self.on_map, latched, max_bytes=MAX_MAP_BYTES)

    def on_ack(self, message: Any) -> None:
        """Count the acknowledgement of a participant."""
        spent = message.processing_time
        frames = self._acknowledged.setdefault(message.participant, {})
        # Repeated for the first frame; the first acknowledgement counts.
        frames.setdefault(
            stamp_from_message(message.header.stamp),
            (message.mapped, spent.sec + spent.nanosec / 1e9),
        )

    def on_state(self, message: Any) -> None:
        """Note how far the frames are."""
        now_s = self._clock()
        if message.frames_published > self.state.frames_published:
            stamp_ns = stamp_from_message(message.header.stamp)
            self._frames = [*self._frames[:1], (stamp_ns, now_s)]
            self.staleness.published(stamp_ns, now_s)
        if message.state == RunState.STATE_FINISHED and self._ended_s is None:
            self._ended_s = now_s
        self.state = message

    def on_diagnostics(self, message: Any) -> None:
        """Keep what nodes complain about."""
        self.complaints |= complaints_of(message)
        values = values_of(message, EVALUATOR)
        # Anybody may publish there.
        with contextlib.suppress(KeyError, ValueError):
            if stage := values['stage']:
                self.evaluation = f'evaluate: {stage} ({float(values["fraction"]):.0%})'

    def on_map(self, message: Any) -> None:
        """Note who publishes maps, and whether one is final."""
        now_s = self._clock()
        self.staleness.mapped(stamp_from_message(message.header.stamp), now_s)
        self._frames_used[message.participant] = message.frames_used
        if message.is_final:
            if not self.final_map_from:
                self._map_s = now_s
            self.final_map_from = message.participant

    @property
    def final_map_s(self) -> float | None:
        """Wall time from the end of the frames to the final map; None without one of them."""
        if self._map_s is None or self._ended_s is None:
            return None
        # They come by two topics, in any order.
        return max(0.0, self._map_s - self._ended_s)

    def complaint(self, node: str) -> str:
        """Return the last problem that a node reported; empty if none."""
        return self.complaints.get(node, '')

    def missing(self) -> str:
        """Return what an evaluation waits for, and the problems that nodes report."""
        if not self.final_map_from:
            return (
                f'topic "{topics.SEMANTIC_MAP}": the mapper published no map with is_final, or '
                'its final map did not come'
            )
        complaints = [f'{node}: {text}' for node, text in self.complaints.items() if text]
        return f'{self.final_map_from} has published its final map; ' + (
            '; '.join(complaints) or f'the evaluator hangs at "{self.evaluation}"'
        )

    def speed_factor(self) -> float | None:
        """Return stamp seconds per wall second from the first frame to the last."""
        if len(self._frames) < 2:
            return None
        (first_ns, first_s), (last_ns, last_s) = self._frames
        return (last_ns - first_ns) / 1e9 / (last_s - first_s) if last_s > first_s else None

    def processing_s(self, participant: str) -> float:
        """Return the processing time that a participant reports for all its frames."""
        return sum(spent for _, spent in self._acknowledged.get(participant, {}).values())

    def participation(self) -> tuple[Participation, ...]:
        """Return how many frames every node received and mapped, and its latencies."""
        listed = {item.participant: item for item in self.state.participants}
        names = dict.fromkeys([*listed, *sorted(self._acknowledged), *sorted(self._frames_used)])
        return tuple(self._participation(name, listed.get(name)) for name in names)

    def _participation(self, name: str, listed: Any | None) -> Participation:
        published = self.state.frames_published
        frames = self._acknowledged.get(name)
        if listed is None and frames is None:
            # It acknowledges nothing; but its map says how many frames went into it.
            used = self._frames_used.get(name) or None
            return Participation(name, published, used, used)
        own = frames or {}
        received, mapped = len(own), sum(was_mapped for was_mapped, _ in own.values())
        if listed is None:
            return Participation(name, published, received, mapped)
        # The bridge stops to count with the last frame; later acknowledgements count as well.
        return Participation(
            name,
            published,
            max(received, listed.frames_acknowledged),
            max(mapped, listed.frames_mapped),
            *(
                _known(value)
                for value in (
                    listed.latency_p50,
                    listed.latency_p95,
                    listed.latency_p99,
                    listed.latency_max,
                    listed.processing_time_mean,
                )
            ),
        )

    def close(self) -> None:
        """End the node."""
        self._resources.close()


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
