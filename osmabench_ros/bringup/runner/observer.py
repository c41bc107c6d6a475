"""The runner's own node, which records what happens in a run for the report."""

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
from osmabench_ros.msg import RunState, SemanticMap
from osmabench_ros.ros import qos
from osmabench_ros.ros.matched_client import LifecycleClient, command_node
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.ros.node.diagnostics import complaints_of, values_of
from osmabench_ros.ros.node.participants import UNKNOWN_NODE
from osmabench_ros.runs.timings import Participation

# Largest announcement of a map; it holds the scene graph and no points.
MAX_MAP_BYTES = 512 * 2**20
# Fields of a participant with seconds, as `Participation` has them.
TIMES = (
    'latency_p50', 'latency_p95', 'latency_p99', 'latency_max', 'processing_time_mean',
)  # fmt: skip


class RunObserver:
    """Lifecycle client of the nodes; subscribes to state, diagnostics and maps."""

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
        self._frames_used: dict[str, int] = {}
        self._frames: list[tuple[int, float]] = []
        # Activity of the evaluator, with the fraction done.
        self.evaluation = 'evaluate'
        # Who announced the final map; empty before.
        self.final_map_from = ''
        # Topics of ground truth that each node subscribes to, by the name of the node.
        self.readers: dict[str, frozenset[str]] = {}
        self.complaints: dict[str, str] = {}
        self._ended_s: float | None = None
        self._map_s: float | None = None
        subscribe = partial(qos.create_checked_subscription, self._node)
        latched, volatile = qos.latched_profile(), qos.diagnostics_profile()
        subscribe(DiagnosticArray, topics.DIAGNOSTICS, self.on_diagnostics, volatile)
        subscribe(RunState, topics.RUN_STATE, self.on_state, latched)
        subscribe(SemanticMap, topics.SEMANTIC_MAP, self.on_map, latched, max_bytes=MAX_MAP_BYTES)

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

    def look_for_readers(self) -> None:
        """Note the nodes that subscribe to images of the ground truth."""
        for topic in topics.GROUND_TRUTH_IMAGES:
            for item in qos.topic_graph(self._node, topic).subscribers:
                name = item.node.rpartition('/')[2]
                if name == UNKNOWN_NODE:  # Its name comes a moment later.
                    continue
                self.readers[name] = self.readers.get(name, frozenset()) | {topic}

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

    def missing(self) -> str:
        """Return why an evaluation waits, and the problems that nodes report."""
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

    def participation(self) -> dict[str, Participation]:
        """Return how many frames every node received and mapped, and its latencies."""
        published = self.state.frames_published
        listed = {
            item.participant: Participation(
                item.participant,
                published,
                item.frames_acknowledged,
                item.frames_mapped,
                *map(_get_known, (getattr(item, name) for name in TIMES)),
            )
            for item in self.state.participants
        }
        # The others acknowledge nothing; but their maps say how many frames went into them.
        others = {
            name: Participation(name, published, used or None, used or None)
            for name, used in sorted(self._frames_used.items())
            if name not in listed
        }
        return listed | others

    def close(self) -> None:
        """End the node."""
        self._resources.close()


def _get_known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
