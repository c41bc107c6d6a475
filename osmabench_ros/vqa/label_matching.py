"""Which labels of a map a noun of a question may mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.vqa.knowledge import knowledge

SIMILARITY_THRESHOLD = 0.74
"""Cosine of the bundled sentence embedder from which two labels count as one thing.

All pairs of different household classes of `knowledge.yaml` lie below it (armchair and chair come
closest, 0.73); sofa and couch have 0.86, lamp and floor lamp 0.80.
"""


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return features of shape (N, D), rows of length 1."""
        ...


class LabelMatcher:
    """Finds the labels of one map that a noun means.

    A noun of the map's own vocabulary (empty if open) means exactly that label. For any other
    noun, labels with the same spelling or the same head of synonyms match, and if there is none
    and there is an embedder, those with a cosine similarity of at least `threshold`.
    """

    def __init__(
        self,
        labels: Iterable[str],
        vocabulary: Iterable[str] = (),
        embedder: Embedder | None = None,
        threshold: float = SIMILARITY_THRESHOLD,
    ) -> None:
        self._labels = tuple(sorted({normalised_name(label) for label in labels}))
        self._vocabulary = frozenset(normalised_name(label) for label in vocabulary)
        self._embedder = embedder
        self._threshold = threshold
        self._features: NDArray[np.float32] | None = None
        self._found: dict[str, frozenset[str]] = {}

    def matching(self, noun: str) -> frozenset[str]:
        """Return the labels of the map that a noun means, possibly none."""
        return self.same(noun) or self.similar(noun)

    def same(self, noun: str) -> frozenset[str]:
        """Return the labels that are the noun or a synonym of it."""
        noun = normalised_name(noun)
        if noun in self._vocabulary:
            return frozenset({noun}.intersection(self._labels))
        canonical = knowledge().canonical
        return frozenset(label for label in self._labels if canonical(label) == canonical(noun))

    def similar(self, noun: str) -> frozenset[str]:
        """Return the labels whose embedding is close; none for a noun of the vocabulary."""
        noun = normalised_name(noun)
        if noun in self._vocabulary:
            return frozenset()
        if noun not in self._found:
            self._found[noun] = self._similar(noun)
        return self._found[noun]

    def _similar(self, noun: str) -> frozenset[str]:
        if self._embedder is None or not self._labels:
            return frozenset()
        if self._features is None:
            self._features = self._embedder.embed(self._labels)
        cosine = self._features @ self._embedder.embed([noun])[0]
        close = np.flatnonzero(cosine >= self._threshold)
        return frozenset(self._labels[i] for i in close)
