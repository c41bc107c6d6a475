"""When the next frame may follow, by a steady clock. Needs no ROS."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from osmabench_ros.errors import ParticipantError

REPEAT_FIRST_AFTER_S = 3.0
"""A reader may not have matched yet when the writer has, and then misses the first frame."""


@dataclass
class Acknowledgements:
    """Outstanding acknowledgements of the newest frame; `timeout_s` holds for one frame."""

    participants: Iterable[str]
    timeout_s: float
    _owing: set[str] = field(default_factory=set, init=False)
    _stamp_ns: int = field(default=-1, init=False)
    _since_s: float = field(default=0.0, init=False)
    _heard_s: dict[str, float] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.participants = tuple(self.participants)

    def expect(self, stamp_ns: int, now_s: float) -> None:
        """Start to wait for a frame that was just published."""
        for name in self.participants:
            self._heard_s.setdefault(name, now_s)
        self._owing = set(self.participants)
        self._stamp_ns = stamp_ns
        self._since_s = now_s

    def receive(self, participant: str, stamp_ns: int, now_s: float) -> None:
        """Take a new acknowledgement."""
        self._heard_s[participant] = now_s
        if stamp_ns == self._stamp_ns:
            self._owing.discard(participant)

    def resume(self, now_s: float) -> None:
        """Restart all timeouts after a pause."""
        self._since_s = now_s
        self._heard_s = dict.fromkeys(self._heard_s, now_s)

    @property
    def complete(self) -> bool:
        """Whether every participant acknowledged the newest frame."""
        return not self._owing

    def waited_s(self, now_s: float) -> float:
        """Return the time since the newest frame was published."""
        return now_s - self._since_s

    def check(self, now_s: float, frame_index: int) -> None:
        """Raise ParticipantError if a participant was silent for too long, even in realtime."""
        late = [name for name in self._owing if now_s - self._heard_s[name] > self.timeout_s]
        if late and self.waited_s(now_s) > 0:
            raise ParticipantError(
                f'no acknowledgement of frame {frame_index} from {", ".join(sorted(late))} within '
                f'{self.timeout_s:g} s; the node hangs, is too slow (raise pacing.ack_timeout_s), '
                'or does not acknowledge (declare it with acks: false)'
            )


@dataclass
class RealtimeClock:
    """Due times of frames on the steady clock, at `speed_factor` stamp seconds a wall second."""

    speed_factor: float
    _start_s: float | None = field(default=None, init=False)
    _start_stamp_ns: int = field(default=0, init=False)

    def resume(self) -> None:
        """Restart with the next frame, so that a pause is not caught up."""
        self._start_s = None

    def due(self, stamp_ns: int, now_s: float) -> bool:
        """Return whether the frame of a stamp may be published; the first one starts the clock."""
        if self._start_s is None:
            self._start_s, self._start_stamp_ns = now_s, stamp_ns
        elapsed = (stamp_ns - self._start_stamp_ns) / 1e9 / self.speed_factor
        return now_s - self._start_s >= elapsed
