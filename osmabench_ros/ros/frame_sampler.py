"""Keeps a few colour frames as pictures, so that a report shows what the mapper saw."""

from __future__ import annotations

import math
from pathlib import Path

from PIL import Image as Picture
from sensor_msgs.msg import Image

from osmabench_ros.errors import RunError
from osmabench_ros.ros import topics
from osmabench_ros.ros.images import image_from_message


class FrameSampler:
    """Writes every n-th frame.

    Parameters
    ----------
    directory : Path
        Gets ``%06d.png``, numbered by frame.
    frame_count : int
        Frames of the run; 0 if unknown.
    samples : int
        How many to keep about.
    """

    def __init__(self, directory: Path, frame_count: int, samples: int) -> None:
        self._directory = directory
        self._every = max(1, math.ceil(frame_count / samples)) if frame_count else 10
        self._stamps: set[tuple[int, int]] = set()

    def take(self, message: Image) -> None:
        """Count a frame, and write it if it is one of the sample.

        Raises
        ------
        RunError
            If the folder cannot be written to.
        """
        stamp = (message.header.stamp.sec, message.header.stamp.nanosec)
        if stamp in self._stamps:
            return
        index = len(self._stamps)
        self._stamps.add(stamp)
        if index % self._every:
            return
        path = self._directory / f'{index:06d}.png'
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix('.tmp')
            Picture.fromarray(image_from_message(message, topics.COLOR)).save(temporary, 'PNG')
            temporary.rename(path)
        except OSError as error:
            raise RunError(f'cannot write {path}: {error.strerror}; free some disk') from error
