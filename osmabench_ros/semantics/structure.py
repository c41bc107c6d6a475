"""Which class names mean a part of the building rather than a thing in it."""

from __future__ import annotations

from osmabench_ros.semantics.labels import normalised_name

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
"""Last words that mean structure whatever stands before them; not 'door': cabinets have doors."""

UNNAMED = frozenset(
    {'', 'unknown', 'unlabeled', 'unlabelled', 'undefined', 'void', 'none', 'other', 'ignore'}
)
"""Names data sets give to what has no class."""


def is_structure(name: str) -> bool:
    """Tell whether a class name means a part of the building, e.g. 'floor' or 'bathroom wall'."""
    words = normalised_name(name).split(' ')
    return ' '.join(words) in STRUCTURE_NAMES or words[-1] in STRUCTURE_NOUNS


def is_unnamed(name: str) -> bool:
    """Tell whether a class name stands for 'no class'."""
    return normalised_name(name) in UNNAMED
