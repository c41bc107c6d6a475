"""How fast a node works at the moment."""

from __future__ import annotations

from collections import deque

WINDOW = 50


class RecentWork:
    """Rate and duration of the newest `window` pieces of work, such as frames."""

    def __init__(self, window: int = WINDOW) -> None:
        self._recent: deque[tuple[float, float]] = deque(maxlen=window)
        self.count = 0
        """All pieces ever."""

    def add(self, duration_s: float, now_s: float) -> None:
        """Count a piece that ended now, on a steady clock."""
        self._recent.append((now_s, duration_s))
        self.count += 1

    def rate_hz(self, now_s: float) -> float:
        """Return pieces per second up to now, so that it falls while nothing comes."""
        if len(self._recent) < 2:
            return 0.0
        first_s, last_s = self._recent[0][0], self._recent[-1][0]
        mean_gap_s = (last_s - first_s) / (len(self._recent) - 1)
        gap_s = max(mean_gap_s, now_s - last_s)
        return 1.0 / gap_s if gap_s > 0 else 0.0

    def values(self, now_s: float) -> dict[str, float]:
        """Return the figures as diagnostics name them; durations are left out without work."""
        durations = [duration for _, duration in self._recent]
        if not durations:
            return {'rate_hz': 0.0}
        return {
            'rate_hz': self.rate_hz(now_s),
            'processing_time_mean_s': sum(durations) / len(durations),
            'processing_time_max_s': max(durations),
        }
