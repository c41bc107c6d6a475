"""Settings of reading a robot's bag: topics, stamps, and matching of messages to frames."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.base.contract import CAMERA_POSE, COLOR, DEPTH, DEPTH_INFO, INSTANCE, SEMANTIC
from osmabench_ros.base.documents import parse_yaml, read_yaml
from osmabench_ros.base.strict import FilePath, Strict, validated
from osmabench_ros.errors import ConfigError

# As the topic of the pose: look it up in /tf and /tf_static.
TF = 'tf'


def match_stamps(
    stamps_ns: Mapping[str, Collection[int]], reference: str, tolerance_ns: int
) -> list[dict[str, int]]:
    """Match messages of `reference` with the nearest of each topic within `tolerance_ns`."""
    ordered = {
        topic: np.unique(np.asarray(list(items), np.int64)) for topic, items in stamps_ns.items()
    }
    if any(len(items) == 0 for items in ordered.values()):
        return []
    centres = ordered[reference]
    nearest = {topic: items[_nearest(items, centres)] for topic, items in ordered.items()}
    found: list[dict[str, int]] = []
    last: dict[str, int] = {}
    for index in range(len(centres)):
        match = {topic: int(items[index]) for topic, items in nearest.items()}
        near = all(abs(stamp - int(centres[index])) <= tolerance_ns for stamp in match.values())
        fresh = all(last.get(topic) != stamp for topic, stamp in match.items())
        if near and fresh:
            found.append(match)
            last = match
    return found


def _nearest(items: NDArray[np.int64], centres: NDArray[np.int64]) -> NDArray[np.intp]:
    after = np.clip(np.searchsorted(items, centres), 0, len(items) - 1)
    before = np.clip(after - 1, 0, len(items) - 1)
    earlier = np.abs(items[before] - centres) <= np.abs(items[after] - centres)
    return np.where(earlier, before, after)


class SequenceReading(Strict):
    """Settings of a configuration or a YAML file for the frames of a bag.

    Parameters
    ----------
    color, depth, camera_info : str
        Images, and the camera of the depth image, to which colour is registered.
    pose : str
        Camera or a body that carries it (PoseStamped, Odometry …), or 'tf' to look it up in TF. A
        pose message without child frame is the pose of the camera's optical frame.
    semantic, instance : str
        Optional in the bag.
    world : str
        Fixed frame for 'tf'; empty for the root of the tree.
    namespace : str
        Of relative topics, such as '/robot'.
    tolerance_s : float
        How far stamps of a frame may lie apart; 0 for equal ones.
    msg_paths : tuple of Path
        Message definitions that the bag lacks.
    """

    color: str = Field(COLOR, min_length=1)
    depth: str = Field(DEPTH, min_length=1)
    camera_info: str = Field(DEPTH_INFO, min_length=1)
    pose: str = Field(CAMERA_POSE, min_length=1)
    semantic: str = Field(SEMANTIC, min_length=1)
    instance: str = Field(INSTANCE, min_length=1)
    world: str = ''
    namespace: str = ''
    tolerance_s: float = Field(0.0, ge=0.0, le=10.0)
    msg_paths: tuple[FilePath, ...] = ()

    @property
    def images(self) -> dict[str, str]:
        """Parts of a frame in the contract by absolute topic name."""
        names = {
            COLOR: self.color,
            DEPTH: self.depth,
            DEPTH_INFO: self.camera_info,
            SEMANTIC: self.semantic,
            INSTANCE: self.instance,
        }
        return {self._absolute(name): part for part, name in names.items()}

    @property
    def pose_topic(self) -> str:
        """Absolute name of the topic of the pose, empty for TF."""
        return '' if self.pose == TF else self._absolute(self.pose)

    def _absolute(self, name: str) -> str:
        space = self.namespace.strip('/')
        return name if name.startswith('/') else f'/{space}/{name}' if space else f'/{name}'


# Topics of the README, equal stamps.
AS_IN_THE_CONTRACT = SequenceReading()


def reading_from_text(text: str) -> SequenceReading:
    """Return the settings of a YAML mapping, a YAML file's path, or '' (the contract).

    Such a mapping is ``{color: /cam/rgb, pose: tf, tolerance_s: 0.02}``. Relative `msg_paths` of a
    file count from its folder, in a mapping from the working directory. Raises ConfigError,
    which names the file, key or value.
    """
    source, folder = 'sequence_topics', Path()
    data: Any = parse_yaml(text, source, ConfigError) if text.strip() else {}
    if isinstance(data, str):
        source, folder = f'{source} {data}', Path(data).parent
        data = read_yaml(data, ConfigError)
    reading = validated(SequenceReading, data, source)
    paths = tuple(folder / path for path in reading.msg_paths)
    return reading.model_copy(update={'msg_paths': paths})
