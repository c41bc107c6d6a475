"""Reads the nouns of WordNet from Debian's wordnet-base."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from osmabench_ros.errors import MetricError, MissingDependencyError

DIRECTORY = Path('/usr/share/wordnet')
"""Where the Debian package wordnet-base puts the database."""

_THINGS = frozenset({6, 13, 20, 27})
"""Lexicographer files of what stands in homes: artifact, food, plant, substance."""

_MEANT = {'cushion': 'padding', 'plant': 'flora', 'plate': 'flatware'}
"""Words whose most frequent artifact is none of a home, with a word from the right meaning or the
one above it."""


@dataclass(frozen=True)
class Synset:
    """One meaning, named by its byte offset in data.noun, with the words for it.

    The file is the kind of meaning, e.g. 6 for artifacts; hypernyms are more general meanings.
    """

    offset: int
    lexicographer_file: int
    lemmas: tuple[str, ...]
    hypernyms: tuple[int, ...]


class WordNet:
    """The nouns of a WordNet 3 database.

    Raises MissingDependencyError if index.noun or data.noun is not in the folder.
    """

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
        """Return the most frequent meaning of a word that is a thing in a home.

        If it has none, the most frequent one; None if WordNet does not know the word. A plural
        means its singular, if that is known.
        """
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
