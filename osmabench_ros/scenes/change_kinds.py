"""Kinds of changes of a scene, as configurations and files name them."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from osmabench_ros.base.documents import read_yaml
from osmabench_ros.base.strict import FilePath, Strict
from osmabench_ros.errors import ConfigError, choose
from osmabench_ros.semantics.labels import COLOR_EXAMPLES


class ChangeType(str, Enum):
    """The kinds of changes of Hypo3D."""

    MOVEMENT = 'movement'
    REMOVAL = 'removal'
    ATTRIBUTE = 'attribute'
    ADDITION = 'addition'
    REPLACEMENT = 'replacement'


class Move(Strict):
    """A thing moves, with all that it carries: metres along the world's axes, and a turn left."""

    kind: Literal['move']
    object: str
    offset_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn_deg: float = 0.0

    @model_validator(mode='after')
    def _moves(self) -> Move:
        if not any(self.offset_m) and not self.turn_deg:
            raise ValueError('say how it moves: give "offset_m" or "turn_deg"')
        return self


class Remove(Strict):
    """A thing goes, and if `carried` is true all that it carries."""

    kind: Literal['remove']
    object: str
    carried: bool = False


class New(Strict):
    """What comes: `like` another thing of the scene, or a mesh `file` of a class `label`.

    Files are in metres; glTF is y-up, other formats z-up.
    """

    like: str = ''
    file: FilePath | None = None
    label: str = ''

    @model_validator(mode='after')
    def _one_source(self) -> New:
        if bool(self.like) == (self.file is not None):
            raise ValueError('say what comes: give "like" or "file"')
        if self.file is not None and not self.label:
            raise ValueError('a file does not say its class; give "label"')
        return self


class Add(New):
    """A thing comes; the middle of its lower side is at `position_m`, in the world."""

    kind: Literal['add']
    name: str = Field(min_length=1)
    position_m: tuple[float, float, float]
    turn_deg: float = 0.0


class Replace(New):
    """Another thing comes in the place of one, as `name`; what this one carried must stay up."""

    kind: Literal['replace']
    object: str
    name: str = ''
    turn_deg: float = 0.0


class Recolor(Strict):
    """A thing has another colour, without its texture, or looks `like` another thing."""

    kind: Literal['recolor']
    object: str
    color: str = ''
    material: str = ''
    like: str = ''

    @model_validator(mode='after')
    def _one_look(self) -> Recolor:
        if bool(self.like) == bool(self.color):
            raise ValueError('say how it looks: give "color" or "like"')
        if self.color:
            problem = f'"{self.color}" is not a known colour'
            choose(self.color, COLOR_EXAMPLES, ValueError, problem)
        return self


class Swing(Strict):
    """A door opens or closes: the leaf turns about one of its upright edges.

    Of the two edges and two senses the first that leaves the leaf free is taken, so an open leaf
    closes by the angle that it stands open.
    """

    kind: Literal['open', 'close']
    object: str
    angle_deg: float = Field(80.0, gt=0, le=180)


class Switch(Strict):
    """A lamp, named by its thing or by its light, goes on, with an intensity, or off."""

    kind: Literal['switch']
    lamp: str
    on: bool
    intensity: float = Field(1.0, gt=0)


Change = Annotated[
    Move | Remove | Add | Replace | Recolor | Swing | Switch, Field(discriminator='kind')
]


def _of_file(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return read_yaml(Path(given).expanduser(), ConfigError)
    except (ConfigError, RuntimeError) as error:  # the latter for the home of an unknown user
        raise ValueError(str(error)) from error


Changes = Annotated[tuple[Change, ...], BeforeValidator(_of_file)]
"""Changes one after another, or the path of a YAML file that lists them."""
