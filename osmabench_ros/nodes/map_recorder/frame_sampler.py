"""Saves a few colour frames as pictures for the report."""

from __future__ import annotations

import math
from pathlib import Path

from PIL import Image as Picture
from sensor_msgs.msg import Image

from osmabench_ros.base import contract as topics
from osmabench_ros.base.files import written_file
from osmabench_ros.base.image_codec import color_of
from osmabench_ros.base.owned_folder import claim_folder
from osmabench_ros.msg import RunInfo
from osmabench_ros.ros.messages.images import image_from_message
from osmabench_ros.ros.messages.poses import SECOND_NS, stamp_from_message

MAX_WAITING, MAX_WAITING_BYTES = 32, 2**28
"""Images that are kept until run_info says which of them count; on a robot it never does."""

MAX_INDEX = 10**6
"""Of a run that does not say how many frames it has."""


class FrameSampler:
    """Writes every n-th frame, about `samples` of them, as ``%06d.png`` numbered by frame."""

    def __init__(self, directory: Path, samples: int) -> None:
        self._directory = directory
        self._samples = samples
        self.waiting: list[Image] = []
        self._run: RunInfo | None = None

    def start(self, run: RunInfo) -> None:
        """Set the first stamp and the number of frames."""
        if self._run is None:
            self._run = run
            for message in self.waiting:
                self.take(message)
            self.waiting = []

    def take(self, message: Image) -> None:
        """Count a frame, and write it if it is in the sample; RunError if it cannot be written."""
        if self._run is None:
            self._wait(message)
            return
        index = self._index(self._run, message)
        if not 0 <= index < (self._run.frame_count or MAX_INDEX):
            return
        every = math.ceil(self._run.frame_count / self._samples) or 10
        path = self._directory / f'{index:06d}.png'
        if index % every or path.exists():
            return
        claim_folder(self._directory)
        with written_file(path) as draft:
            pixels = image_from_message(message, topics.COLOR, color_of)
            Picture.fromarray(pixels).save(draft, 'PNG')

    def _wait(self, message: Image) -> None:
        held_bytes = sum(len(image.data) for image in self.waiting)
        if len(self.waiting) < MAX_WAITING and held_bytes < MAX_WAITING_BYTES:
            self.waiting.append(message)

    @staticmethod
    def _index(run: RunInfo, message: Image) -> int:
        """Return the index of a frame by its stamp, so that lost frames do not shift it."""
        first_ns = stamp_from_message(run.header.stamp)
        since_ns = stamp_from_message(message.header.stamp) - first_ns
        return round(since_ns * float(run.frame_rate) / SECOND_NS)
