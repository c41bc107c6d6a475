"""How long an announced map may be on its way."""

from __future__ import annotations

from typing import Any

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.topics.assembler import CHUNK_TOPIC

LONGEST_LOOK_S = 1.0
"""Most time that counts from one check to the next: beyond it the recorder was busy or paused."""


class MapArrival:
    """The deadline of one announced map: it grows with the size, and needs steady progress.

    A new chunk must come within `stall_s`, the whole map at `bytes_per_s` after a first `stall_s`;
    `now_s` is steady time.
    """

    def __init__(self, message: Any, stall_s: float, bytes_per_s: float, now_s: float) -> None:
        self.message = message
        self._stall_s = stall_s
        self._total_s = stall_s + message.payload_size / bytes_per_s
        self._looked_s = now_s
        self._missing = int(message.chunk_count)
        self.waited_s = 0.0
        self._progress_s = 0.0

    def check(self, missing: int, now_s: float) -> None:
        """Take how many chunks are still missing; raises ContractError if the map is given up."""
        self.waited_s += min(max(now_s - self._looked_s, 0.0), LONGEST_LOOK_S)
        self._looked_s = now_s
        if missing < self._missing:
            self._missing, self._progress_s = missing, self.waited_s
        stalled = self.waited_s - self._progress_s > self._stall_s
        if stalled or self.waited_s > self._total_s:
            message = self.message
            why = (
                f'no new one for {self._stall_s:g} s (parameter chunk_timeout_s)'
                if stalled
                else f'not within {self._total_s:.0f} s (parameter map_rate_mib_s)'
            )
            raise ContractError(
                f'topic "{CHUNK_TOPIC}": {missing} of the {message.chunk_count} chunks did not '
                f'come of the map that {message.participant} announced with '
                f'{message.payload_size} bytes; {why}'
            )
