"""Tiered labels for simulated scenes, made by machine from WordNet, sizes and boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from osmabench_ros.metrics.graph_matching import box_of
from osmabench_ros.metrics.tiers import TieredLabels, TieredObject, tiers_by_id
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode
from osmabench_ros.suites.wordnet import WordNet

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
    nodes = [
        node
        for node in graph.nodes
        if node.kind in (NodeKind.OBJECT, NodeKind.BACKGROUND) and node.label
    ]
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
    """Return the classes that each class of a scene may be taken for, in alphabetical order."""
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
