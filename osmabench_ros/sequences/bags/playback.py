"""When each message of a bag is due. Needs no ROS; the caller gives the time."""

import math
from collections.abc import Collection, Iterator

from osmabench_ros.base.settings import setting
from osmabench_ros.base.strict import FilePath, Strict
from osmabench_ros.errors import ConfigError
from osmabench_ros.sequences.bags.bag import Bag, BagMessage

SENSORS = 'sensor_msgs/'
# Packages with messages that have the time of the machine, whatever /clock says.
OWN_CLOCK = ('diagnostic_msgs/', 'rcl_interfaces/')


def timing_topics(bag: Bag, topics: Collection[str]) -> frozenset[str]:
    """Return the topics with header stamps that give a bag's time: of sensors, if any."""
    kinds = {item.topic: item.message_type for item in bag.connections if item.topic in topics}
    sensors = {topic for topic, kind in kinds.items() if kind.startswith(SENSORS)}
    others = {topic for topic, kind in kinds.items() if not kind.startswith(OWN_CLOCK)}
    return frozenset(sensors or others)


class PlaybackSettings(Strict):
    """Which bag to play, how fast, from where, and for how long."""

    rate: float = setting(1.0, 'Seconds of the bag in a second.', 0.001, 1000)
    start_s: float = setting(0.0, 'Seconds into the bag to start at.', 0, 1e9)
    duration_s: float = setting(0.0, 'Seconds of the bag to play; 0 to the end.', 0, 1e9)
    loop: bool = setting(False, 'Start over at the end.')
    bag: FilePath | None = setting(None, 'Folder of a bag, or an .mcap or .db3 file.')
    msg_paths: tuple[FilePath, ...] = setting(
        (), 'Message definitions that the bag lacks: files or folders.'
    )
    paused: bool = setting(False, 'Wait for start_run or step_run.')
    clock: bool = setting(True, 'Publish /clock: as recorded, else the newest header stamp.')
    topics: tuple[str, ...] = setting((), 'Topics to play; empty for all.')
    delay_s: float = setting(1.0, 'Wait for subscribers to find this node, seconds.', 0, 3600)


class Playback:
    """A position in a bag that advances with time; ConfigError if it starts after the end."""

    def __init__(self, bag: Bag, topics: Collection[str], settings: PlaybackSettings) -> None:
        self._bag = bag
        self._topics = frozenset(topics)
        self._settings = settings
        self._timing = timing_topics(bag, topics)
        kinds = {item.topic: item.message_type for item in bag.connections}
        self._apart = {name for name, kind in kinds.items() if kind.startswith(OWN_CLOCK)}
        self._stamped = any(bag.types.has_stamp(kinds[name]) for name in self._timing)
        first_ns, last_ns = bag.span_ns
        self._begin_ns = first_ns + round(settings.start_s * 1e9)
        if self._begin_ns > last_ns:
            length = f'{(last_ns - first_ns) / 1e9:.2f} s long'
            problem = f'it has nothing after {settings.start_s:g} s'
            raise ConfigError(f'{bag.path} is {length}; {problem}')
        self._stop_ns = last_ns + 1
        if settings.duration_s:
            self._stop_ns = min(self._stop_ns, self._begin_ns + round(settings.duration_s * 1e9))
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
        """Whether all messages were played."""
        return self._next is None

    def latched_before(self) -> list[BagMessage]:
        """Return the last message of each latched topic before the start."""
        if self._begin_ns <= self._bag.span_ns[0]:
            return []
        latched = [item.topic for item in self._bag.connections if item.latched]
        before = self._bag.messages(self._topics & set(latched), stop_ns=self._begin_ns)
        last = {item.topic: item for item in before}
        return sorted(last.values(), key=lambda item: item.log_ns)

    def rewind(self) -> None:
        """Go back to the start; time restarts with the next message."""
        self._position_ns = self._begin_ns
        self._iterator: Iterator[BagMessage] = self._bag.messages(
            self._topics, start_ns=self._begin_ns, stop_ns=self._stop_ns
        )
        self._next = next(self._iterator, None)
        self._anchor: tuple[float, int] | None = None

    def halt(self) -> None:
        """Stop time until the next message is requested."""
        self._anchor = None

    def due(self, now_s: float) -> BagMessage | None:
        """Return the next message and advance if it is due by a steady clock; else None."""
        if self._next is None:
            return None
        if self._anchor is None:
            self._anchor = (now_s, self._position_ns)
        return None if self.wait_s(now_s) else self._take(self._next)

    def wait_s(self, now_s: float) -> float:
        """Return the seconds until the next message is due; infinite at the end."""
        if self._next is None:
            return math.inf
        if self._anchor is None:
            return 0.0
        start_s, start_ns = self._anchor
        due_s = start_s + (self._next.log_ns - start_ns) / 1e9 / self._settings.rate
        return max(due_s - now_s, 0.0)

    def step(self) -> list[BagMessage]:
        """Return the messages up to one later than its sensors; without stamps, one message."""
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
