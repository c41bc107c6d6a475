"""Colours, materials, counts, heights and distances, and comparisons with clear differences."""

from collections.abc import Callable, Iterator
from operator import attrgetter

import numpy as np

from osmabench_ros.semantics.scene_graph import SceneNode
from osmabench_ros.vqa.english import BASIC_COLORS, confusable
from osmabench_ros.vqa.exact import drawing
from osmabench_ros.vqa.exact.view import (
    Draft,
    SceneView,
    color_of,
    material_of,
    plain_color_of,
    sample_pairs,
    shuffled,
)
from osmabench_ros.vqa.kinds import Kind, QueryKind
from osmabench_ros.vqa.knowledge import COMPARATIVES

BOXED = attrgetter('named_boxed')

# More of a kind than this are hard to count, even for people.
LARGEST_COUNT = 12


def _ask_attribute(
    ask: Kind,
    confirm: Kind,
    read: Callable[[SceneNode], str],
    alike: Callable[[str, str], bool],
    one_in: int = 1,
) -> drawing.Source:
    def ask_values(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
        palette = sorted({read(node) for node in view.objects} - {''})
        for node in shuffled(rng, view.named)[: min(limit, len(view.named) // one_in + 1)]:
            value = read(node)
            # A phrase that already says the attribute would give the answer away.
            if not value or view.name(node) not in view.by_label:
                continue
            wrong = shuffled(rng, [word for word in palette if not alike(value, word)])
            yield from view.ask(ask, node)
            for word in (value, *wrong[:2]):
                yield from view.ask(confirm, node, word)

    return ask_values


# Asks for the colour of an object, and whether it has the right or a clearly wrong one.
colors = _ask_attribute(QueryKind.COLOR_OF, QueryKind.HAS_COLOR, plain_color_of, confusable)

# Asks for the material of one object in eight, and whether it is right or another.
materials = _ask_attribute(
    QueryKind.MATERIAL_OF, QueryKind.HAS_MATERIAL, material_of, str.__eq__, one_in=8
)


def counts(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask how many objects of a label, or of a label and colour, there are."""
    phrases = []
    for label, nodes in view.groups.items():
        if len(nodes) > LARGEST_COUNT:
            continue
        phrases.append(label)
        colors = {color_of(node) for node in nodes}
        for color in sorted(BASIC_COLORS & colors) if '' not in colors else ():
            rivals = colors - {color}
            if rivals and not any(confusable(color, other) for other in rivals):
                phrases.append(f'{color} {label}')
    absent = shuffled(rng, view.absent)[: min(limit, len(view.by_label) // 6 + 1)]
    for phrase in (*phrases, *absent):
        yield from view.ask(QueryKind.COUNT, phrases=(phrase,))


# Asks for heights of objects and distances between their centres, in metres.
lengths = drawing.join(
    drawing.ask(drawing.each(BOXED), QueryKind.HEIGHT),
    drawing.ask(drawing.pairs(BOXED), QueryKind.DISTANCE),
)

# Asks for the coordinates of objects.
centers = drawing.ask(drawing.each(BOXED), QueryKind.CENTER)


def _draw_compared(view: SceneView, rng: drawing.Rng, limit: int) -> drawing.Drawn:
    for pair in sample_pairs(rng, view.named_boxed, limit):
        yield *pair, COMPARATIVES[int(rng.integers(len(COMPARATIVES)))]


# Asks which of two objects is taller, bulkier, wider or higher up.
sizes = drawing.ask(_draw_compared, QueryKind.WHICH_MORE, QueryKind.IS_MORE)


def _draw_threes(view: SceneView, rng: drawing.Rng, limit: int) -> drawing.Drawn:
    nodes = view.named_boxed
    for pair in sample_pairs(rng, nodes, limit):
        third = nodes[int(rng.integers(len(nodes)))]
        if third not in pair:
            yield *pair, third


# Asks which of two objects is closer to a third, centre to centre.
nearer = drawing.ask(_draw_threes, QueryKind.CLOSER)

# Asks whether there are more of one label than of another.
numbers = drawing.ask(drawing.pairs(lambda view: view.groups.values()), QueryKind.MORE_OF)
