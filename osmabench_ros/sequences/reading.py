"""How the bag of a robot is to be read: its topics, its stamps, its message definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from osmabench_ros.base.limits.documents import parse_yaml, read_yaml
from osmabench_ros.base.limits.reading import shown
from osmabench_ros.base.strict import FilePath
from osmabench_ros.errors import ConfigError
from osmabench_ros.sequences.bag_messages import (
    CAMERA_POSE,
    COLOR,
    DEPTH,
    DEPTH_INFO,
    INSTANCE,
    SEMANTIC,
)
from osmabench_ros.sequences.frame_topics import FrameTopics
from osmabench_ros.simulation.section import Section, validated


class SequenceReading(Section):
    """What a configuration, or a YAML file, says about the frames of a bag.

    Parameters
    ----------
    color, depth, camera_info, pose, semantic, instance, world : str
        As in `FrameTopics`; 'tf' as `pose` looks the camera up in TF.
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
    def topics(self) -> FrameTopics:
        """Names of topics."""
        return FrameTopics(
            self.color,
            self.depth,
            self.camera_info,
            self.pose,
            self.semantic,
            self.instance,
            self.world,
        )


AS_IN_THE_CONTRACT = SequenceReading()
"""Topics of the README, equal stamps."""


def reading_from_text(text: str) -> SequenceReading:
    """Return the reading that a YAML mapping, the YAML file of a path, or '' (the contract) gives.

    Such a mapping is ``{color: /cam/rgb, pose: tf, tolerance_s: 0.02}``. Relative `msg_paths` of a
    file count from its folder, those of a mapping from the working directory. Raises ConfigError,
    which names what is wrong: the file, a key or a value.
    """
    source, folder = 'sequence_topics', Path()
    data: Any = parse_yaml(text, source, ConfigError) if text.strip() else {}
    if isinstance(data, str):
        source, folder = f'{source} {shown(data)}', Path(data).parent
        data = read_yaml(data, ConfigError)
    reading = validated(SequenceReading, data, source)
    paths = tuple(folder / path for path in reading.msg_paths)
    return reading.model_copy(update={'msg_paths': paths})
