"""Rows of drawn objects and the kinds of questions that are asked about them."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from osmabench_ros.vqa.exact.view import Draft, SceneView, Term, sample_pairs, shuffled
from osmabench_ros.vqa.kinds import Kind

Rng = np.random.Generator
Drawn = Iterator[tuple[Term, ...]]
Draw = Callable[[SceneView, Rng, int], Drawn]
# Yields the drafts of a view, in a seeded order, from so many objects or pairs at most.
Source = Callable[[SceneView, Rng, int], Iterator[Draft]]

Pool = Callable[[SceneView], Iterable[Any]]


def each(pool: Pool) -> Draw:
    """Draw single items of a pool."""
    return lambda view, rng, limit: ((item,) for item in shuffled(rng, pool(view))[:limit])


def pairs(pool: Pool) -> Draw:
    """Draw ordered pairs of different items of a pool."""
    return lambda view, rng, limit: sample_pairs(rng, [*pool(view)], limit)


def ask(draw: Draw, *kinds: Kind) -> Source:
    """Return a source that asks questions of kinds about the same draws, where they are clear."""

    def ask_kinds(view: SceneView, rng: Rng, limit: int) -> Iterator[Draft]:
        for terms in draw(view, rng, limit):
            for kind in kinds:
                yield from view.ask(kind, *terms)

    return ask_kinds


def ask_by_row(kind: Kind) -> Source:
    """Return a source that asks about the draws of a row."""

    def draw(view: SceneView, rng: Rng, limit: int) -> Drawn:
        assert kind.draw is not None
        yield from shuffled(rng, kind.draw(view))[:limit]

    return ask(draw, kind)


def join(*sources: Source) -> Source:
    """Return a source of the drafts of several, one after the other."""
    return lambda *arguments: chain.from_iterable(source(*arguments) for source in sources)
