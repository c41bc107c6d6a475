"""Label sets, the sentinel for unlabelled points, and the common names of colours."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.errors import ConfigError

UNLABELLED = 65535
"""Class id of a pixel, point or label that has no class."""

NO_INSTANCE = 0
"""Instance id of a pixel or point that belongs to no object."""


ClassId = Annotated[int, Field(ge=0, lt=UNLABELLED)]
Name = Annotated[str, Field(min_length=1)]


def normalised_name(name: str) -> str:
    """Return a class name as this package spells it: lower case, single spaces, no underscores."""
    return ' '.join(name.replace('_', ' ').lower().split())


@dataclass(frozen=True)
class LabelClass:
    """One class.

    Parameters
    ----------
    id : int
        Value in semantic images, 0 to 65534.
    name : str
        Normalised name, e.g. ``'coffee table'``.
    structure : bool
        True for parts of a building: walls, floors, ceilings, doors, windows.
    """

    id: ClassId
    name: Name
    structure: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.id < UNLABELLED and self.name):
            raise ConfigError(
                f'class "{self.name}" has id {self.id}; ids must lie in 0 to {UNLABELLED - 1}, '
                'and names must not be empty'
            )


@dataclass(frozen=True)
class LabelSet:
    """The vocabulary of a scene or data set.

    Parameters
    ----------
    name : str
        For example ``'apartment'``.
    classes : tuple of LabelClass
        In any order, kept ordered by id; ids and names unique.
    """

    name: str
    classes: tuple[LabelClass, ...]

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.classes, key=lambda item: item.id))
        object.__setattr__(self, 'classes', ordered)
        for what in ('id', 'name'):
            counts = Counter(str(getattr(item, what)) for item in ordered)
            if twice := sorted(value for value, count in counts.items() if count > 1):
                raise ConfigError(
                    f'label set "{self.name}": {what} {", ".join(twice)} occurs more than once'
                )

    @classmethod
    def from_names(
        cls, name: str, names: Iterable[str], structure: Iterable[str] = (), first_id: int = 1
    ) -> LabelSet:
        """Build from names, numbered alphabetically; those in `structure` are marked so."""
        marked = {normalised_name(item) for item in structure}
        ordered = enumerate(sorted({normalised_name(item) for item in names} | marked), first_id)
        return cls(name, tuple(LabelClass(i, item, item in marked) for i, item in ordered))

    @cached_property
    def by_id(self) -> Mapping[int, LabelClass]:
        """Classes by id."""
        return {item.id: item for item in self.classes}

    @cached_property
    def by_name(self) -> Mapping[str, LabelClass]:
        """Classes by normalised name."""
        return {item.name: item for item in self.classes}

    @property
    def structure_names(self) -> list[str]:
        """Names of the classes that are parts of the building."""
        return [item.name for item in self.classes if item.structure]

    @property
    def ids(self) -> NDArray[np.int32]:
        """Class ids in order, shape (C,)."""
        return np.array([item.id for item in self.classes], np.int32)

    def name_of(self, class_id: int) -> str:
        """Return the name of a class id, 'unlabelled' for the sentinel."""
        if class_id == UNLABELLED:
            return 'unlabelled'
        if class_id not in self.by_id:
            raise ConfigError(
                f'label id {class_id} is not in label set "{self.name}" '
                f"({len(self.classes)} classes); add it or use the scene's own label set"
            )
        return self.by_id[class_id].name

    def id_of(self, name: str) -> int:
        """Return the id of a class name, UNLABELLED if the set does not have it."""
        found = self.by_name.get(normalised_name(name))
        return UNLABELLED if found is None else found.id

    def check(self, labels: NDArray[np.integer], source: str) -> None:
        """Raise ConfigError if an array holds an id outside the set; `source` is named."""
        unknown = np.setdiff1d(np.unique(labels), [*self.ids.tolist(), UNLABELLED])
        if unknown.size:
            raise ConfigError(
                f'{source}: label ids {unknown[:5].tolist()} are not in label set "{self.name}"; '
                'use the label set of the scene, 65535 for unlabelled'
            )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serialisable form."""
        return asdict(self)

    @classmethod
    def from_foreign(cls, name: str, classes: Iterable[Mapping[str, Any]]) -> LabelSet:
        """Build from classes as others list them, each with "id" and "name" in any spelling."""
        listed = [
            (int(item['id']), normalised_name(str(item['name'])), bool(item.get('structure')))
            for item in classes
        ]
        return cls(name, tuple(LabelClass(*item) for item in listed))

    @cached_property
    def sha256(self) -> str:
        """Hex digest of the canonical JSON form."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(',', ':'))
        return hashlib.sha256(text.encode()).hexdigest()


STRUCTURE_NAMES = frozenset(
    {
        'baseboard', 'beam', 'ceiling', 'ceilings', 'column', 'door',
        'door frame', 'doorframe', 'doorway', 'entrance', 'floor', 'floors',
        'folding door', 'ground', 'ground plane', 'pillar', 'railing', 'roof', 'sliding door',
        'stair', 'staircase', 'stairs', 'step', 'wall', 'walls', 'window', 'window frame',
        'window glass', 'windowsill',
    }
)  # fmt: skip
"""Normalised names; data sets do not say it themselves."""

STRUCTURE_NOUNS = frozenset({'wall', 'floor', 'ceiling', 'window'})
"""Last words of structure names, whatever comes before; not 'door': cabinets have doors."""

UNNAMED = frozenset(
    {'', 'unknown', 'unlabeled', 'unlabelled', 'undefined', 'void', 'none', 'other', 'ignore'}
)
"""Names that data sets give to surfaces without a class."""


def is_structure(name: str) -> bool:
    """Return whether a class is a part of the building, e.g. 'floor' or 'bathroom wall'."""
    words = normalised_name(name).split(' ')
    return ' '.join(words) in STRUCTURE_NAMES or words[-1] in STRUCTURE_NOUNS


def group_rows_by_id(ids: NDArray[np.integer]) -> dict[int, NDArray[np.intp]]:
    """Return the ascending rows of every class or instance id, ids ascending."""
    if not len(ids):
        return {}
    order = np.argsort(ids, kind='stable')
    values, starts = np.unique(ids[order], return_index=True)
    return dict(zip(values.tolist(), np.split(order, starts[1:]), strict=True))


def is_unnamed(name: str) -> bool:
    """Return whether a class name means 'no class'."""
    return normalised_name(name) in UNNAMED


COLOR_EXAMPLES: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        'white': (237, 237, 232),
        'cream': (237, 222, 189),
        'light gray': (194, 196, 196),
        'gray': (140, 143, 145),
        'dark gray': (69, 71, 77),
        'black': (23, 23, 26),
        'silver': (189, 194, 199),
        'gold': (204, 163, 71),
        'red': (194, 33, 31),
        'pink': (232, 153, 168),
        'orange': (237, 128, 31),
        'yellow': (237, 201, 56),
        'green': (56, 133, 64),
        'olive': (115, 120, 56),
        'teal': (26, 120, 122),
        'light blue': (153, 199, 227),
        'blue': (38, 82, 173),
        'navy': (26, 36, 84),
        'purple': (112, 61, 140),
        'beige': (209, 189, 153),
        'light brown': (189, 140, 89),
        'brown': (128, 82, 46),
        'dark brown': (71, 43, 26),
    }
)
"""An sRGB example of each colour term; the procedural apartment uses the same terms."""


def convert_to_lab(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return CIELAB (D65) of sRGB colours (..., 3)."""
    from skimage.color import rgb2lab

    return np.asarray(rgb2lab(rgb.astype(np.float64) / 255.0))


def color_indices(rgb: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return for each colour (N, 3) the row (N,) of the nearest of COLOR_EXAMPLES in CIELAB."""
    examples = np.array(list(COLOR_EXAMPLES.values()), np.uint8)
    palette, inverse = np.unique(rgb.reshape(-1, 3), axis=0, return_inverse=True)
    difference = convert_to_lab(palette)[:, None] - convert_to_lab(examples)
    nearest = np.argmin((difference**2).sum(axis=2), axis=1)
    return np.asarray(nearest[inverse.reshape(-1)])


def choose_color(indices: NDArray[np.integer], weights: NDArray[np.integer]) -> str:
    """Return the name with the greatest sum of weights; ties go to the first name."""
    votes = np.bincount(indices, weights=weights, minlength=len(COLOR_EXAMPLES))
    return list(COLOR_EXAMPLES)[int(votes.argmax())]
