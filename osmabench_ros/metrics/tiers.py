"""Tiered labels of OpenLex3D: acceptable names of an object, and categories of others."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.files import write_text
from osmabench_ros.errors import MetricError

# Objects with such a synonym are not scored.
EXCLUDED_SYNONYMS = ('wall', 'floor', 'ceiling', 'doorframe', 'ledge', 'windowledge')


class WordCategory(IntEnum):
    """Category of a word for an object, best first; a point takes the best of its words."""

    SYNONYM = 0
    DEPICTION = 1
    VISUALLY_SIMILAR = 2
    CLUTTER = 3
    MISSING = 4
    INCORRECT = 5
    NONE = 6


_KEYS = ('synonyms', 'depictions', 'vis_sim')


@dataclass(frozen=True)
class TieredObject:
    """Words for one object.

    Parameters
    ----------
    object_id : int
        Instance id.
    synonyms, depictions, visually_similar : tuple of str
        Names of the object, of pictures on it, and of objects that look like it.
    clutter : tuple of int
        Objects around it; their words count as clutter.
    """

    object_id: int
    synonyms: tuple[str, ...]
    depictions: tuple[str, ...] = ()
    visually_similar: tuple[str, ...] = ()
    clutter: tuple[int, ...] = ()

    @property
    def tiers(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The three text categories, best first."""
        return self.synonyms, self.depictions, self.visually_similar


def strip_word(word: str) -> str:
    """Return a word as OpenLex3D compares it: without spaces, case kept."""
    return word.replace(' ', '')


@dataclass(frozen=True, eq=False)
class TieredLabels:
    """Words for the objects of a scene.

    Parameters
    ----------
    objects : mapping of int to TieredObject
        By instance id.
    machine_made : bool
        True if a program wrote them, false if people did.
    """

    objects: Mapping[int, TieredObject]
    machine_made: bool = False

    def table(self, object_ids: NDArray[np.integer], prompts: Sequence[str]) -> NDArray[np.int8]:
        """Return the category of every prompt for every object, shape (O, L).

        Rows of objects without synonyms or with an excluded one are NONE throughout.
        """
        columns: dict[str, list[int]] = {}
        for index, prompt in enumerate(prompts):
            columns.setdefault(strip_word(prompt), []).append(index)
        table = np.full((len(object_ids), len(prompts)), WordCategory.INCORRECT, np.int8)
        for row, object_id in enumerate(object_ids):
            item = self.objects.get(int(object_id))
            if item is None or not self.is_scored(item):
                table[row] = WordCategory.NONE
                continue
            neighbours = (self.objects[i] for i in item.clutter if i in self.objects)
            nearby = [word for other in neighbours for tier in other.tiers for word in tier]
            # Worst first, so that better categories overwrite.
            for category, words in reversed(list(enumerate([*item.tiers, nearby]))):
                for word in words:
                    table[row, columns.get(strip_word(word), [])] = category
        return table

    @staticmethod
    def is_scored(item: TieredObject) -> bool:
        """Return whether an object counts: it has synonyms, and none is part of a building."""
        words = {strip_word(word) for word in item.synonyms}
        return bool(words) and not words & set(EXCLUDED_SYNONYMS)

    def prompts(self) -> list[str]:
        """Return every word of every category once, in alphabetical order."""
        return sorted({w for item in self.objects.values() for tier in item.tiers for w in tier})


def read_tiers(path: Path) -> TieredLabels:
    """Read a gt_categories.json.

    Raises MetricError if the file is missing or malformed; names it and the sample.
    """
    try:
        data = read_json(path, MetricError)
        samples = data['dataset']['samples']
        made = bool(data['dataset'].get('machine_made', False))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MetricError(f'{path}: no tiered labels (dataset.samples): {error!r}') from error
    objects = {}
    for index, sample in enumerate(samples):
        try:
            item = _object_of(sample)
        except (KeyError, TypeError, ValueError) as error:
            raise MetricError(f'{path}: samples[{index}] is malformed: {error!r}') from error
        objects[item.object_id] = item
    return TieredLabels(objects, made)


def _object_of(sample: Mapping[str, Any]) -> TieredObject:
    attributes = sample['labels']['image_attributes']
    synonyms, depictions, similar = (
        tuple(str(word) for word in attributes.get(key, ())) for key in _KEYS
    )
    clutter = tuple(int(item) for item in attributes.get('clutter', ()))
    return TieredObject(int(sample['object_id']), synonyms, depictions, similar, clutter)


def write_tiers(labels: TieredLabels, path: Path) -> None:
    """Write a gt_categories.json that OpenLex3D's own tools read as well."""
    samples = [
        {
            'name': str(item.object_id),
            'object_id': item.object_id,
            'labels': {
                'image_attributes': {
                    **{key: list(words) for key, words in zip(_KEYS, item.tiers, strict=True)},
                    'clutter': [str(other) for other in item.clutter],
                }
            },
        }
        for _, item in sorted(labels.objects.items())
    ]
    document = {'dataset': {'machine_made': labels.machine_made, 'samples': samples}}
    write_text(path, f'{json.dumps(document, indent=1)}\n')


def collect_tiers(items: Iterable[TieredObject], *, machine_made: bool = False) -> TieredLabels:
    """Collect objects."""
    return TieredLabels({item.object_id: item for item in items}, machine_made)
