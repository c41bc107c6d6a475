"""Which class names mean a part of the building rather than a thing in it."""

from __future__ import annotations

from osmabench_ros.semantics.labels import normalised_name

STRUCTURE_NAMES = frozenset(
    {
        'wall', 'walls', 'floor', 'floors', 'ceiling', 'ceilings', 'door', 'doorway', 'door frame',
        'doorframe', 'entrance', 'folding door', 'sliding door', 'window', 'window frame',
        'window glass', 'windowsill', 'beam', 'column', 'pillar', 'roof', 'stair', 'stairs',
        'staircase', 'step', 'railing', 'ceiling lower', 'floor mat step', 'baseboard',
    }
)  # fmt: skip
"""Normalised names; data sets do not say it themselves."""

UNNAMED = frozenset(
    {'', 'unknown', 'unlabeled', 'unlabelled', 'undefined', 'void', 'none', 'other', 'ignore'}
)
"""Names data sets give to what has no class."""


def is_structure(name: str) -> bool:
    """Tell whether a class name means a part of the building."""
    return normalised_name(name) in STRUCTURE_NAMES


def is_unnamed(name: str) -> bool:
    """Tell whether a class name stands for 'no class'."""
    return normalised_name(name) in UNNAMED
