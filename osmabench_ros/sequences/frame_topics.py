"""Which topics of a bag carry the parts of a frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from osmabench_ros.errors import ConfigError, suggestion
from osmabench_ros.sequences.bag_messages import (
    CAMERA_POSE,
    COLOR,
    DEPTH,
    DEPTH_INFO,
    INSTANCE,
    SEMANTIC,
)

TF = 'tf'
"""As the topic of the pose: look it up in /tf and /tf_static."""


@dataclass(frozen=True)
class FrameTopics:
    """Names of topics, relative ones in the namespace of the bag.

    Parameters
    ----------
    color, depth, camera_info : str
        Images, and the camera of the depth image, to which colour is registered.
    pose : str
        Camera or a body that carries it (PoseStamped, Odometry …), or 'tf'. A pose message
        without child frame is that of the camera's optical frame.
    semantic, instance : str
        Optional in the bag.
    world : str
        Fixed frame for 'tf'; empty for the root of the tree.
    """

    color: str = COLOR
    depth: str = DEPTH
    camera_info: str = DEPTH_INFO
    pose: str = CAMERA_POSE
    semantic: str = SEMANTIC
    instance: str = INSTANCE
    world: str = ''

    @classmethod
    def parse(cls, entries: Mapping[str, str]) -> FrameTopics:
        """Return the contract's topics with some replaced; ConfigError for bad keys or names."""
        known = [item.name for item in fields(cls)]
        for key, name in entries.items():
            if key not in known:
                raise ConfigError(f'"{key}" is no part of a frame. {suggestion(key, known)}')
            if not name:
                raise ConfigError(f'the topic of "{key}" is empty; name one')
        return replace(cls(), **entries)

    def images(self, namespace: str) -> dict[str, str]:
        """Return what the parts of a frame are called in the contract, by absolute names."""
        prefix = f'/{namespace.strip("/")}/' if namespace.strip('/') else '/'
        names = {
            COLOR: self.color,
            DEPTH: self.depth,
            DEPTH_INFO: self.camera_info,
            SEMANTIC: self.semantic,
            INSTANCE: self.instance,
        }
        return {absolute(name, prefix): part for part, name in names.items()}

    def pose_topic(self, namespace: str) -> str:
        """Return the absolute name, empty for TF."""
        prefix = f'/{namespace.strip("/")}/' if namespace.strip('/') else '/'
        return '' if self.pose == TF else absolute(self.pose, prefix)


def absolute(name: str, prefix: str) -> str:
    """Return an absolute name of a topic."""
    return name if name.startswith('/') else prefix + name
