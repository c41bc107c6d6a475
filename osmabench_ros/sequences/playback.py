"""When which message of a bag is to be played. No ROS in here, no clock of its own."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from osmabench_ros.errors import ConfigError
from osmabench_ros.sequences.bag import Bag, BagMessage

SENSORS = 'sensor_msgs/'
OWN_CLOCK = ('diagnostic_msgs/', 'rcl_interfaces/')
"""Packages whose messages are stamped with the time of the machine, whatever /clock says."""


def timing_topics(bag: Bag, topics: Collection[str]) -> frozenset[str]:
    """Return the topics whose header stamps give the time of a bag.

    Those of sensors; where there are none, all but those that have a clock of their own.
    """
    kinds = {item.topic: item.message_type for item in bag.connections if item.topic in topics}
    sensors = {topic for topic, kind in kinds.items() if kind.startswith(SENSORS)}
    others = {topic for topic, kind in kinds.items() if not kind.startswith(OWN_CLOCK)}
    return frozenset(sensors or others)


@dataclass(frozen=True)
class PlaybackOptions:
    """How fast to play, as a factor, from where, and for how many seconds of the bag; 0 for all.

    Raises ConfigError if `rate` is not positive or a time is negative.
    """

    rate: float = 1.0
    start_s: float = 0.0
    duration_s: float = 0.0
    loop: bool = False

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise ConfigError(f'rate is {self.rate:g}; give a number above 0, 1 plays as recorded')
        for name, value in (('start', self.start_s), ('duration', self.duration_s)):
            if not value >= 0:
                raise ConfigError(f'{name} is {value:g} s; give a number that is not negative')


class Playback:
    """A position in a bag that moves on with time; ConfigError if it starts after the end."""

    def __init__(self, bag: Bag, topics: Collection[str], options: PlaybackOptions) -> None:
        self._bag, self._topics, self._options = bag, frozenset(topics), options
        self._timing = timing_topics(bag, topics)
        kinds = {item.topic: item.message_type for item in bag.connections}
        self._apart = {name for name, kind in kinds.items() if kind.startswith(OWN_CLOCK)}
        self._stamped = any(bag.types.has_stamp(kinds[name]) for name in self._timing)
        first_ns, last_ns = bag.span_ns
        self._begin_ns = first_ns + round(options.start_s * 1e9)
        if self._begin_ns > last_ns:
            raise ConfigError(
                f'{bag.path} is {(last_ns - first_ns) / 1e9:.2f} s long; it has nothing after '
                f'{options.start_s:g} s'
            )
        self._stop_ns = last_ns + 1
        if options.duration_s:
            self._stop_ns = min(self._stop_ns, self._begin_ns + round(options.duration_s * 1e9))
        self.rewind()

    @property
    def position_s(self) -> float:
        """Seconds of the bag since the start of playing."""
        return (self._position_ns - self._begin_ns) / 1e9

    @property
    def length_s(self) -> float:
        """Seconds of the bag to play."""
        return (self._stop_ns - self._begin_ns) / 1e9

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self._next is None

    def latched_before(self) -> list[BagMessage]:
        """Return the last message of each latched topic before the start, which the rest needs."""
        if self._begin_ns <= self._bag.span_ns[0]:
            return []
        latched = [item.topic for item in self._bag.connections if item.latched]
        last: dict[str, BagMessage] = {}
        for item in self._bag.messages(self._topics & set(latched), stop_ns=self._begin_ns):
            last[item.topic] = item
        return sorted(last.values(), key=lambda item: item.log_ns)

    def rewind(self) -> None:
        """Go back to the start; time begins anew with the next message."""
        self._position_ns = self._begin_ns
        self._iterator: Iterator[BagMessage] = self._bag.messages(
            self._topics, start_ns=self._begin_ns, stop_ns=self._stop_ns
        )
        self._next = next(self._iterator, None)
        self._anchor: tuple[float, int] | None = None

    def halt(self) -> None:
        """Let time stand still until the next message is asked for."""
        self._anchor = None

    def due(self, now_s: float) -> BagMessage | None:
        """Return the next message, and move on, if it is due by a steady clock; else None."""
        if self._next is None:
            return None
        if self._anchor is None:
            self._anchor = (now_s, self._position_ns)
        start_s, start_ns = self._anchor
        if (self._next.log_ns - start_ns) / 1e9 > (now_s - start_s) * self._options.rate:
            return None
        return self._take(self._next)

    def wait_s(self, now_s: float) -> float:
        """Return for how long `due` will give nothing, in seconds; infinite at the end."""
        if self._next is None:
            return math.inf
        if self._anchor is None:
            return 0.0
        start_s, start_ns = self._anchor
        due_s = start_s + (self._next.log_ns - start_ns) / 1e9 / self._options.rate
        return max(due_s - now_s, 0.0)

    def step(self) -> list[BagMessage]:
        """Return the messages of the next frame: until one comes that is later than its sensors.

        Messages without a stamp belong to the frame before; what comes before the first frame
        belongs to it. A bag that has no stamps at all goes on by one message.
        """
        self._anchor = None
        taken: list[BagMessage] = []
        newest_ns: int | None = None
        while self._next is not None:
            stamp_ns = None if self._next.topic in self._apart else self._next.header_stamp_ns
            if stamp_ns is not None:
                if newest_ns is not None and stamp_ns > newest_ns:
                    break
                if self._next.topic in self._timing:
                    newest_ns = max(stamp_ns, newest_ns or stamp_ns)
            elif taken and not self._stamped:
                break
            taken.append(self._take(self._next))
        return taken

    def _take(self, message: BagMessage) -> BagMessage:
        self._position_ns = max(self._position_ns, message.log_ns)
        self._next = next(self._iterator, None)
        return message
