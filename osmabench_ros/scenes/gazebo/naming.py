"""Class names from the names of models, which say no classes themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from itertools import takewhile

from osmabench_ros.semantics.labels import normalised_name


def common_prefix(names: Iterable[str]) -> str:
    """Return what at least three names (behind '::') all start with, up to the last underscore."""
    every = sorted({name.rpartition('::')[2] for name in names})
    if len(every) < 3:
        return ''
    # All of a sorted list share what its ends share.
    pairs = zip(every[0], every[-1], strict=False)
    shared = ''.join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared[: shared.rfind('_') + 1]


def class_name_of(model: str, patterns: Mapping[str, str], prefix: str = '') -> str:
    """Return the class of a model.

    Parameters
    ----------
    model : str
        For example ``'aws_robomaker_residential_KitchenTable_01_001'``.
    patterns : mapping
        Class names by shell pattern, tried in order, case-insensitive; an empty class name means
        no class.
    prefix : str
        Dropped from the front of the name.

    Returns
    -------
    str
        By default the name without prefix, trailing numbers and the letter of a variant, words
        apart and in lower case: ``'kitchen table'``.
    """
    for pattern, name in patterns.items():
        if fnmatchcase(model.lower(), pattern.lower()):
            return normalised_name(name)
    plain = model.rpartition('::')[2].removeprefix(prefix)
    plain = re.sub(r'([_\-. ]?\d+|_clone)+$', '', plain) or plain
    words = re.sub(r'(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])', ' ', plain)
    name = normalised_name(words.replace('-', ' ').replace('.', ' '))
    # Variants of a model are often lettered: ChairA, ChairD.
    return re.sub(r'(?<=\w\w) [a-z]$', '', name)
