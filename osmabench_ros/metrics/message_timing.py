"""Timing of messages, and the lag of the newest map behind the frames."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Staleness:
    """Map staleness over a run, in seconds of stamp time.

    Parameters
    ----------
    mean_s : float
        Mean over wall time, from the first frame to the last map.
    max_s : float
        Largest.
    final_s : float
        After the last map.
    maps : int
        Maps that brought it down.
    """

    mean_s: float
    max_s: float
    final_s: float
    maps: int


@dataclass
class StalenessMeter:
    """Follows published frames and maps.

    At each time, staleness is the stamp of the newest published frame minus the stamp of the
    newest frame in the newest map. Before the first map it counts from the stamp of the first
    frame.
    """

    _first_ns: int | None = field(default=None, init=False)
    _frame_ns: int = field(default=0, init=False)
    _map_ns: int = field(default=0, init=False)
    _maps: int = field(default=0, init=False)
    _start_s: float = field(default=0.0, init=False)
    _changed_s: float = field(default=0.0, init=False)
    _area: float = field(default=0.0, init=False)
    _until_map: Staleness | None = field(default=None, init=False)
    _max_ns: int = field(default=0, init=False)

    def published(self, stamp_ns: int, now_s: float) -> None:
        """Take the stamp of the newest frame; an older one changes nothing."""
        if self._first_ns is None:
            self._first_ns = self._frame_ns = self._map_ns = stamp_ns
            self._start_s = self._changed_s = now_s
        self._pass_time(now_s)
        self._frame_ns = max(self._frame_ns, stamp_ns)
        self._max_ns = max(self._max_ns, self._now_ns)

    def mapped(self, stamp_ns: int, now_s: float) -> None:
        """Take the stamp of the newest frame in a map that was received."""
        if self._first_ns is None:
            return
        self._pass_time(now_s)
        self._maps += 1
        # A map cannot hold a frame that was not published, whatever its stamp says.
        self._map_ns = min(max(self._map_ns, stamp_ns), self._frame_ns)
        self._until_map = self._so_far()

    def result(self) -> Staleness | None:
        """Return staleness up to the last map; None without a frame or without a map."""
        return self._until_map

    @property
    def _now_ns(self) -> int:
        return self._frame_ns - self._map_ns

    def _pass_time(self, now_s: float) -> None:
        self._area += self._now_ns / 1e9 * (now_s - self._changed_s)
        self._changed_s = now_s

    def _so_far(self) -> Staleness:
        lasted_s = self._changed_s - self._start_s
        final_s = self._now_ns / 1e9
        mean_s = self._area / lasted_s if lasted_s > 0 else final_s
        return Staleness(mean_s, self._max_ns / 1e9, final_s, self._maps)


# A gap is longer than so many median intervals.
GAP_FACTOR = 3.0

# Longer latencies say that stamps and log times are of different clocks.
MAX_LATENCY_S = 600.0


@dataclass(frozen=True)
class MessageTiming:
    """Timing of one topic; None where its messages do not give a value.

    Parameters
    ----------
    count : int
        Messages.
    duration_s : float
        From the first to the last, by log time.
    rate_hz : float, optional
        Intervals over their sum.
    median_interval_s, longest_interval_s : float, optional
        Between consecutive messages.
    gaps : int, optional
        Intervals of more than `GAP_FACTOR` medians.
    latency_p50_s, latency_p95_s, latency_max_s : float, optional
        From header stamp to log time, both of one clock.
    """

    count: int
    duration_s: float = 0.0
    rate_hz: float | None = None
    median_interval_s: float | None = None
    longest_interval_s: float | None = None
    gaps: int | None = None
    latency_p50_s: float | None = None
    latency_p95_s: float | None = None
    latency_max_s: float | None = None


def message_timing(
    log_ns: NDArray[np.int64],
    stamps_ns: NDArray[np.int64] | None,
    clock: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> MessageTiming:
    """Return the timing of the messages of one topic.

    Parameters
    ----------
    log_ns : ndarray of int64, shape (N,)
        Log times, in any order.
    stamps_ns : ndarray of int64, shape (N,), optional
        Header stamps of the same messages; None if the type has no header.
    clock : (ndarray, ndarray), optional
        Log times and values of /clock, for stamps of simulated time: latency is then in
        simulated seconds.

    Notes
    -----
    Latencies that are negative or longer than `MAX_LATENCY_S` in the median are none: stamps are
    of another clock than the recorder's.
    """
    if not len(log_ns):
        return MessageTiming(0)
    ordered = np.sort(log_ns)
    steps = np.diff(ordered) / 1e9
    duration_s = float(ordered[-1] - ordered[0]) / 1e9
    latency = _measure_latency(log_ns, stamps_ns, clock)
    if not len(steps):
        return MessageTiming(1, 0.0, None, None, None, None, *latency)
    median_s = float(np.median(steps))
    return MessageTiming(
        len(ordered),
        duration_s,
        len(steps) / duration_s if duration_s > 0 else None,
        median_s,
        float(steps.max()),
        int(np.count_nonzero(steps > GAP_FACTOR * median_s)) if median_s > 0 else None,
        *latency,
    )


def _measure_latency(
    log_ns: NDArray[np.int64],
    stamps_ns: NDArray[np.int64] | None,
    clock: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
) -> tuple[float | None, float | None, float | None]:
    if stamps_ns is None:
        return None, None, None
    received = log_ns
    if clock is not None and len(clock[0]):
        received = _read_clock(log_ns, *clock)
    # A stamp of 0 means that the message was not stamped.
    stamped = stamps_ns != 0
    latency_s = (received - stamps_ns)[stamped] / 1e9
    if not len(latency_s) or not 0 <= np.median(latency_s) <= MAX_LATENCY_S:
        return None, None, None
    p50, p95 = np.percentile(latency_s, [50, 95])
    return float(p50), float(p95), float(latency_s.max())


def _read_clock(
    log_ns: NDArray[np.int64], clock_log_ns: NDArray[np.int64], clock_ns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the value of /clock at some log times; its first value before it began."""
    order = np.argsort(clock_log_ns, kind='stable')
    rows = np.searchsorted(clock_log_ns[order], log_ns, side='right') - 1
    return np.asarray(clock_ns[order][rows.clip(min=0)])
