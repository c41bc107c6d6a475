"""How far the newest map lags behind the frames that were published."""

from __future__ import annotations

from dataclasses import dataclass, field


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

    At each time, staleness is the stamp of the newest published frame minus that of the newest
    frame in the newest map. Before the first map nothing is mapped, and it counts from the stamp
    of the first frame.
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
