"""When the map of a third-party stack has settled."""

from __future__ import annotations

from enum import Enum

PATIENCE = 3.0
"""A method is waited for so many times as long as it ever took for a change of its map."""
MOST_PATIENCE_S = 60.0


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
