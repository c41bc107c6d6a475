"""Common knowledge about kinds of objects: affordances and synonyms."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import permutations
from typing import Any

import yaml
from pydantic import TypeAdapter

from osmabench_ros.vqa.english import plural, singular

# Comparisons of boxes: height, volume, longest horizontal side, height of the centre.
COMPARATIVES = ('taller', 'bulkier', 'wider', 'higher up')

# Uses of objects, in the words of a question.
AFFORDANCES = ('sat on', 'lain on', 'opened', 'picked up', 'written at', 'switched on')


@dataclass(frozen=True)
class Knowledge:
    """The tables of `knowledge.yaml`, all of labels.

    `synonyms` maps to the head of a group, `unclear` has labels of which people do not agree
    whether an affordance holds, `fixed` labels of objects that no robot carries, `mixed` labels of
    objects of no one colour or material. `alike` are pairs of which free answers may use the
    second for the first. `words`, `opposites` and `one_color` are how the judge by rule reads free
    answers.
    """

    affordances: Mapping[str, frozenset[str]]
    synonyms: Mapping[str, str]
    household: tuple[str, ...]
    fixed: frozenset[str]
    unclear: Mapping[str, frozenset[str]]
    mixed: frozenset[str]
    spelling: Mapping[str, str]
    alike: frozenset[tuple[str, str]]
    words: Mapping[str, frozenset[str]]
    opposites: tuple[tuple[str, str], ...]
    one_color: tuple[frozenset[str], ...]

    def name(self, noun: str) -> str:
        """Return the one name for the noun of a free answer, singular or plural."""
        return _name(noun, self.synonyms)

    def calls(self, noun: str, other: str) -> bool:
        """Return whether free answers may call an object of one noun by another one."""
        names = self.name(noun), self.name(other)
        return names[0] == names[1] or names in self.alike

    def canonical(self, label: str) -> str:
        """Return the head of a label's group of synonyms, the label itself if it has none."""
        return self.synonyms.get(label, label)

    def affords(self, label: str, affordance: str) -> bool:
        """Return whether objects of a label, or of a synonym, have an affordance."""
        return self.canonical(label) in self.affordances.get(affordance, frozenset())

    def may_afford(self, label: str, affordance: str) -> bool:
        """Return whether some people would say that objects of a label have an affordance."""
        unclear = self.unclear.get(affordance, frozenset())
        return self.affords(label, affordance) or self.canonical(label) in unclear

    def spelt(self, label: str) -> str:
        """Return a normalised label as questions and answers spell it."""
        return self.spelling.get(label, label)


@lru_cache(maxsize=1)
def knowledge() -> Knowledge:
    """Return the tables that come with the package."""
    text = resources.files('osmabench_ros.vqa').joinpath('knowledge.yaml').read_text('utf-8')
    data = yaml.safe_load(text)
    synonyms = {label: group[0] for group in data['synonyms'] for label in group}

    def heads(labels: Iterable[str]) -> frozenset[str]:
        return frozenset(synonyms.get(label, label) for label in labels)

    affordances = {word: heads(labels) for word, labels in data['affordances'].items()}
    unclear = {word: heads(labels) - affordances[word] for word, labels in data['unclear'].items()}
    normalised = {
        'affordances': affordances,
        'unclear': unclear,
        'synonyms': synonyms,
        'household': sorted({label for group in data['household'] for label in group}),
        'fixed': heads(data['fixed']),
        'mixed': heads(data['mixed']),
        'alike': {(_name(a, synonyms), _name(b, synonyms)) for a, b in _pairs(data)},
    }
    return TypeAdapter(Knowledge).validate_python(data | normalised)


def _pairs(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return nouns that may be called otherwise, with their other names."""
    for group in data['alike']:
        yield from permutations(group, 2)
    for kind, members in data['kinds'].items():
        yield from ((member, kind) for member in members)


def _name(noun: str, synonyms: Mapping[str, str]) -> str:
    """Return the head of a noun's group of synonyms, else its singular.

    Some kinds have no singular: "stairs" becomes "stair" wherever it is read.
    """
    return synonyms.get(noun) or synonyms.get(plural(noun)) or singular(noun)
