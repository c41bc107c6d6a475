"""The interface of sensor effects: entry points in the group ``osmabench.effects``."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PlainValidator, SerializeAsAny, TypeAdapter
from pydantic_core import PydanticKnownError

from osmabench_ros.base.extensions import EFFECTS, load_extension
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Lighting


@dataclass(frozen=True)
class Shot:
    """One exposure; `index` counts from 0, dropped frames included, `time_s` from the start."""

    index: int
    time_s: float
    intrinsics: Intrinsics
    seed: int = 0


class Effect(Strict):
    """Base of all effects: changes nothing.

    An effect is a pure function of its settings, the frame, and the seeds; it keeps no state.
    """

    kind: str
    """Its entry point in the group osmabench.effects."""
    seed: int = Field(0, ge=0)
    """Of its random numbers, beside that of the run."""

    def generator(self, shot: Shot) -> np.random.Generator:
        """Return the random numbers of this effect for one frame."""
        return np.random.default_rng(
            [self.seed, shot.seed, zlib.crc32(self.kind.encode()), shot.index]
        )

    def lighting(self, lighting: Lighting, shot: Shot) -> Lighting:  # noqa: ARG002
        """Change the light before it is rendered."""
        return lighting

    def color(self, color: NDArray[np.uint8], shot: Shot) -> NDArray[np.uint8]:  # noqa: ARG002
        """Change the colour image (height, width, 3)."""
        return color

    def depth(
        self,
        depth_m: NDArray[np.float32],
        shot: Shot,  # noqa: ARG002
    ) -> NDArray[np.float32]:
        """Change the depth image (height, width); NaN is invalid, +inf out of range."""
        return depth_m

    def keeps(self, count: int, seed: int) -> NDArray[np.bool_]:  # noqa: ARG002
        """Return which of `count` frames arrive."""
        return np.ones(count, bool)

    def reported_poses(self, poses: Sequence[Pose], seed: int) -> list[Pose]:  # noqa: ARG002
        """Return the poses that the robot believes to have had."""
        return list(poses)


def _effect(data: Any) -> Effect:
    """Return the effect of an entry of `effects:`, whose `kind` says which it is."""
    if isinstance(data, Effect):
        return data
    if not isinstance(data, Mapping):
        raise PydanticKnownError('model_attributes_type')
    if 'kind' not in data:
        raise PydanticKnownError('union_tag_not_found', {'discriminator': "'kind'"})
    kind = str(data['kind'])
    try:
        effect = load_extension(EFFECTS, kind)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    if not (isinstance(effect, type) and issubclass(effect, Effect)):
        raise ValueError(f'the entry point of effect "{kind}" names no subclass of Effect')
    # In a mapping, so that the places of faults begin with the kind.
    return TypeAdapter(dict[str, effect]).validate_python({kind: data})[kind]  # type: ignore[valid-type]


AnyEffect = Annotated[SerializeAsAny[Effect], PlainValidator(_effect)]
"""One entry of `effects:`; its `kind` is the name of the entry point."""
