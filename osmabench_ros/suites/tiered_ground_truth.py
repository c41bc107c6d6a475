"""Tiered labels for simulated scenes, made by machine from WordNet, sizes and boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from osmabench_ros.errors import MetricError, MissingDependencyError
from osmabench_ros.metrics.matching import box_of
from osmabench_ros.metrics.tiers import TieredLabels, TieredObject, tiers_by_id
from osmabench_ros.semantics.scene_graph import THINGS, SceneGraph, SceneNode

DIRECTORY = Path('/usr/share/wordnet')
"""Where the Debian package wordnet-base puts the database."""

_THINGS = frozenset({6, 13, 20, 27})
"""Lexicographer files of what stands in homes: artifact, food, plant, substance."""

_MEANT = {'cushion': 'padding', 'plant': 'flora', 'plate': 'flatware'}
"""Words whose most frequent artifact is none of a home, with a word from the right meaning or the
one above it."""


@dataclass(frozen=True)
class Synset:
    """One meaning, named by its byte offset in data.noun, with its words and hypernyms."""

    offset: int
    lexicographer_file: int
    lemmas: tuple[str, ...]
    hypernyms: tuple[int, ...]


class WordNet:
    """The nouns of a WordNet 3 database, of files index.noun and data.noun."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._directory = directory
        for name in ('index.noun', 'data.noun'):
            if not (directory / name).is_file():
                raise MissingDependencyError(
                    f'{directory / name} is missing; install it with: apt install wordnet-base'
                )
        self._known: dict[int, Synset] = {}

    @cached_property
    def _offsets(self) -> dict[str, tuple[int, ...]]:
        """Meanings of every word, most frequent first."""
        found = {}
        for line in (self._directory / 'index.noun').read_text('ascii').splitlines():
            if line.startswith(' '):
                continue
            fields = line.split()
            found[fields[0]] = tuple(int(item) for item in fields[-int(fields[2]) :])
        return found

    @cached_property
    def _data(self) -> bytes:
        return (self._directory / 'data.noun').read_bytes()

    def synset(self, offset: int) -> Synset:
        """Return a meaning by its offset; raises MetricError if the database is damaged."""
        if offset not in self._known:
            end = self._data.find(b'\n', offset)
            line = self._data[offset : end if end >= 0 else None].decode('ascii')
            try:
                self._known[offset] = _parsed(line)
            except (ValueError, IndexError) as error:
                raise MetricError(
                    f'{self._directory / "data.noun"}: no synset at byte {offset}'
                ) from error
        return self._known[offset]

    def thing(self, word: str) -> Synset | None:
        """Return the most frequent meaning of a word that is a thing in a home, else any."""
        key = '_'.join(word.lower().split())
        for candidate in (key.removesuffix('s'), key):
            meanings = [self.synset(item) for item in self._offsets.get(candidate, ())]
            things = [item for item in meanings if item.lexicographer_file in _THINGS]
            meant = [item for item in meanings if self._is_meant(item, candidate)]
            if meanings:
                return next(iter(meant or things or meanings))
        return None

    def _is_meant(self, synset: Synset, key: str) -> bool:
        above = (lemma for item in synset.hypernyms for lemma in self.synset(item).lemmas)
        return key in _MEANT and _MEANT[key] in {*synset.lemmas, *above}

    def general(self, synset: Synset, steps: int) -> Iterator[int]:
        """Yield the meanings up to so many steps above one, nearest first, itself excluded."""
        level = [synset]
        for _ in range(steps):
            level = [self.synset(item) for one in level for item in one.hypernyms]
            yield from (item.offset for item in level)


def _parsed(line: str) -> Synset:
    fields = line.split('|', 1)[0].split()
    count = int(fields[3], 16)
    lemmas = tuple(word.replace('_', ' ') for word in fields[4 : 4 + 2 * count : 2])
    pointers = fields[5 + 2 * count :]
    hypernyms = tuple(
        int(pointers[i + 1])
        for i in range(0, 4 * int(fields[4 + 2 * count]), 4)
        if pointers[i] in ('@', '@i')
    )
    return Synset(int(fields[0]), int(fields[1]), lemmas, hypernyms)


MAX_SIZE_RATIO = 2.0
"""Things look alike only if the longer one is at most this much longer."""

COMMON_STEPS = 1
"""Things look alike only if a meaning at most so many steps above both is the same."""


def build_tiers(graph: SceneGraph, wordnet: WordNet) -> TieredLabels:
    """Make tiered labels, marked as machine-made, for the objects and the building of a scene.

    - Synonyms: the class name, the words WordNet has for it and, for names of several words that
      it does not know, the last word.
    - Depictions: none; a simulator does not say what its pictures show.
    - Look-alikes: classes of the scene with a common more general meaning and a similar size.
    - Clutter: objects whose boxes overlap.
    """
    nodes = [node for node in graph.nodes if node.kind in THINGS and node.label]
    words = {name: class_words(name, wordnet) for name in {node.label for node in nodes}}
    alike = look_alikes(nodes, wordnet)
    return tiers_by_id(
        (
            TieredObject(
                node.id,
                words[node.label],
                (),
                tuple(item for item in alike[node.label] if item not in words[node.label]),
                _overlapping(node, nodes),
            )
            for node in nodes
        ),
        machine_made=True,
    )


def class_words(name: str, wordnet: WordNet) -> tuple[str, ...]:
    """Return the words for a class: its name first, then WordNet's in their order."""
    found = wordnet.thing(name)
    words = [name]
    if found is not None:
        words += [lemma.lower() for lemma in found.lemmas]
    elif ' ' in name:
        words.append(name.rsplit(' ', 1)[1])
    return tuple(dict.fromkeys(words))


def look_alikes(nodes: Sequence[SceneNode], wordnet: WordNet) -> dict[str, tuple[str, ...]]:
    """Return the classes that each class of a scene resembles, in alphabetical order."""
    sizes = _class_sizes(nodes)
    above = {name: _meanings_above(name, wordnet) for name in sizes}
    return {
        name: tuple(
            other
            for other in sorted(sizes)
            if other != name
            and above[name] & above[other]
            and max(sizes[name], sizes[other]) <= MAX_SIZE_RATIO * min(sizes[name], sizes[other])
        )
        for name in sizes
    }


def _class_sizes(nodes: Sequence[SceneNode]) -> dict[str, float]:
    """Return the median longest edge of each class in metres; infinite without boxes."""
    edges: dict[str, list[float]] = {}
    for node in nodes:
        box = box_of(node)
        own = edges.setdefault(node.label, [])
        if box is not None:
            own.append(float(box.size.max()))
    return {name: float(np.median(own)) if own else np.inf for name, own in edges.items()}


def _meanings_above(name: str, wordnet: WordNet) -> frozenset[int]:
    found = wordnet.thing(name) or wordnet.thing(name.rsplit(' ', 1)[-1])
    if found is None:
        return frozenset()
    return frozenset({found.offset, *wordnet.general(found, COMMON_STEPS)})


def _overlapping(node: SceneNode, nodes: Sequence[SceneNode]) -> tuple[int, ...]:
    box = box_of(node)
    if box is None:
        return ()
    others = ((other.id, box_of(other)) for other in nodes if other.id != node.id)
    return tuple(i for i, other in others if other and box.intersection_volume(other) > 0)
