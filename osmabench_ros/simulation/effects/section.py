"""All effects a condition file may name."""

from __future__ import annotations

from typing import Annotated, Union

from pydantic import Field

from osmabench_ros.simulation.effects.dropped_frames import DroppedFrames
from osmabench_ros.simulation.effects.exposure import Exposure
from osmabench_ros.simulation.effects.gamma import Gamma
from osmabench_ros.simulation.effects.motion_blur import MotionBlur
from osmabench_ros.simulation.effects.pose_drift import PoseDrift
from osmabench_ros.simulation.effects.structured_light import StructuredLightDepth
from osmabench_ros.simulation.effects.time_of_flight import TimeOfFlightDepth
from osmabench_ros.simulation.effects.white_balance import WhiteBalance

AnyEffect = Annotated[
    Union[  # noqa: UP007 - pydantic evaluates it on Python 3.10
        DroppedFrames,
        Exposure,
        Gamma,
        MotionBlur,
        PoseDrift,
        StructuredLightDepth,
        TimeOfFlightDepth,
        WhiteBalance,
    ],
    Field(discriminator='kind'),
]
"""One entry of `effects:`; its `kind` names the effect."""
