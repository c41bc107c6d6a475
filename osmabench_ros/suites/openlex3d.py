"""OpenLex3D: open-vocabulary labels and queries, as published and done right.

For simulated scenes the tiers of labels come from WordNet, sizes and boxes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from osmabench_ros.errors import MetricError, MissingDependencyError
from osmabench_ros.metrics import openlex3d
from osmabench_ros.metrics.matching import find_box
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.metrics.retrieval import (
    compat_average_precision,
    compat_inverse_rank,
    mean_over_thresholds,
    mean_reciprocal_rank,
    recall_at_k,
    strict_average_precision,
)
from osmabench_ros.metrics.tiers import (
    TieredLabels,
    TieredObject,
    WordCategory,
    collect_tiers,
    read_tiers,
    write_tiers,
)
from osmabench_ros.semantics.scene_graph import THINGS, SceneGraph, SceneNode
from osmabench_ros.suites.queried_map import (
    Level,
    QueriedMap,
    queries_of,
    read_prompts,
    read_queries,
    select_featured_points,
)
from osmabench_ros.suites.suite import FigureSuite, MatchingOptions, SuiteContext

# Where the Debian package wordnet-base puts the database.
DIRECTORY = Path('/usr/share/wordnet')

# Lexicographer files of objects in homes: artifact, food, plant, substance.
_THINGS = frozenset({6, 13, 20, 27})

# Words with a most frequent artifact that is none of a home, with a word from the right meaning or
# the one above it.
_MEANT = {'cushion': 'padding', 'plant': 'flora', 'plate': 'flatware'}


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
        end = self._data.find(b'\n', offset)
        line = self._data[offset : end if end >= 0 else None].decode('ascii')
        try:
            return _parse_synset(line)
        except (ValueError, IndexError) as error:
            file = self._directory / 'data.noun'
            raise MetricError(f'{file}: no synset at byte {offset}') from error

    def thing(self, word: str) -> Synset | None:
        """Return the most frequent meaning of a word that is an object in a home, else any."""
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


def _parse_synset(line: str) -> Synset:
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


# Things look alike only if the longer one is at most this much longer.
MAX_SIZE_RATIO = 2.0


def build_tiers(graph: SceneGraph, wordnet: WordNet) -> TieredLabels:
    """Make tiered labels, marked as machine-made, for the objects and the building of a scene.

    - Synonyms: the class name, the words WordNet has for it and, for names of several words that
      it does not know, the last word.
    - Depictions: none; a simulator does not know the content of its images.
    - Look-alikes: classes of the scene with a common meaning, own or next above, and similar size.
    - Clutter: objects with overlapping boxes.
    """
    nodes = [node for node in graph.nodes if node.kind in THINGS and node.label]
    words = {name: class_words(name, wordnet) for name in {node.label for node in nodes}}
    alike = look_alikes(nodes, wordnet)
    return collect_tiers(
        (
            TieredObject(
                node.id,
                words[node.label],
                (),
                tuple(item for item in alike[node.label] if item not in words[node.label]),
                _find_overlapping(node, nodes),
            )
            for node in nodes
        ),
        machine_made=True,
    )


def class_words(name: str, wordnet: WordNet) -> tuple[str, ...]:
    """Return the words for a class: its name first, then WordNet's in their order."""
    found = wordnet.thing(name)
    last = name.rsplit(' ', 1)[-1]
    lemmas = [last] if found is None else [lemma.lower() for lemma in found.lemmas]
    return tuple(dict.fromkeys((name, *lemmas)))


def look_alikes(nodes: Sequence[SceneNode], wordnet: WordNet) -> dict[str, tuple[str, ...]]:
    """Return the classes that each class of a scene resembles, in alphabetical order."""
    sizes = _measure_classes(nodes)
    above = {name: _find_meanings_above(name, wordnet) for name in sizes}
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


def _measure_classes(nodes: Sequence[SceneNode]) -> dict[str, float]:
    """Return the median longest edge of each class in metres; infinite without boxes."""
    edges: dict[str, list[float]] = {}
    for node in nodes:
        box = find_box(node)
        own = edges.setdefault(node.label, [])
        if box is not None:
            own.append(float(box.size.max()))
    return {name: float(np.median(own)) if own else np.inf for name, own in edges.items()}


def _find_meanings_above(name: str, wordnet: WordNet) -> frozenset[int]:
    found = wordnet.thing(name) or wordnet.thing(name.rsplit(' ', 1)[-1])
    if found is None:
        return frozenset()
    return frozenset({found.offset, *found.hypernyms})


def _find_overlapping(node: SceneNode, nodes: Sequence[SceneNode]) -> tuple[int, ...]:
    box = find_box(node)
    if box is None:
        return ()
    others = ((other.id, find_box(other)) for other in nodes if other.id != node.id)
    return tuple(i for i, other in others if other and box.measure_intersection(other) > 0)


# 1 if the tiered labels were made by a program, 0 if people wrote them.
MACHINE_MADE = 'machine_made_labels'

# How many prompts the words of a feature are chosen among; few flatter Top-N and set ranking.
PROMPTS = 'prompts'

_CATEGORIES = tuple(item.name.lower() for item in WordCategory if item is not WordCategory.NONE)
_RANKING_FIGURES = tuple(
    name for name in openlex3d.SetRanking.__dataclass_fields__ if name != 'objects'
)


RETRIEVAL = ('map', 'ap50', 'ap25', 'inverse_rank')
# Ranks of retrieval recall, which only strict has.
RECALL_RANKS = (1, 5, 10)

# The value of each metric, and the number that it is over.
Scores = Mapping[str, tuple[float | None, int]]


class OpenLex3DOptions(MatchingOptions):
    """Options of the suite.

    Parameters
    ----------
    tiers : Path, optional
        A gt_categories.json; without one, tiered labels are made from WordNet.
    wordnet : Path
        Folder of the WordNet database.
    prompts : Path, optional
        The prompt_list.txt of a data set, as used by published numbers; without one, the
        words of this scene.
    queries : Path, optional
        A gt_categories_query_to_object_mapping_*.json; without one, queries are made from the
        tiered labels.
    query_level : {'l0', 'l1', 'all'}
        Queries that are made: every synonym, every depiction with every synonym, or both.
    mask_alignment : {'per_mask', 'global'}
        How `compat` moves masks to the surface: each by itself, so that they may overlap, or by
        the globally nearest point.
    top_n : tuple of int
        Number of best words that count for a point.
    max_distance_m : float
        Largest distance of a match.
    """

    tiers: Path | None = None
    wordnet: Path = DIRECTORY
    prompts: Path | None = None
    queries: Path | None = None
    query_level: Level = 'l0'
    mask_alignment: Literal['per_mask', 'global'] = 'per_mask'
    top_n: tuple[int, ...] = (1, 5)
    max_distance_m: float = Field(openlex3d.MAX_DISTANCE_M, gt=0)


class OpenLex3DSuite(FigureSuite[OpenLex3DOptions]):
    """Compares the words nearest to a map's features with the labels of each object.

    Needs features that can be compared with text and an encoder for prompts. Tiered labels made
    by machine are written to the context's folder, marked so.
    """

    name = 'openlex3d'
    options_type = OpenLex3DOptions

    def __init__(self, *, options: Mapping[str, Any]) -> None:
        super().__init__(options=options)
        wrong = (name for name in _CATEGORIES if name != 'synonym')
        per_rank = product(self._options.top_n, wrong)
        self.lower_is_better = frozenset({MACHINE_MADE, *(f'top{n}_{x}' for n, x in per_rank)})

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score the features of one map."""
        features = select_featured_points(context.semantic_map)
        if features is None or context.text_encoder is None:
            return self._list_records({}, {})
        tiers = self._read_tiers(context)
        options = self._options
        prompts = tiers.prompts() if options.prompts is None else read_prompts(options.prompts)
        if not prompts:
            return self._list_records({}, {})
        file = options.queries
        queries = read_queries(file) if file else queries_of(tiers, options.query_level)
        most_words = max(options.top_n, default=1)
        asked = QueriedMap(context, features, tiers, prompts, queries, most_words)
        scored = [item for item in tiers.objects.values() if TieredLabels.is_scored(item)]
        return [
            self._record(MACHINE_MADE, float(tiers.machine_made), len(scored)),
            self._record(PROMPTS, len(prompts), len(prompts)),
            *self._list_records(*(self._score(asked, compat=compat) for compat in (True, False))),
        ]

    def _list_records(self, compat: Scores, strict: Scores) -> list[MetricRecord]:
        """Return all metrics of both modes; those without a value are not applicable."""
        words = [f'top{n}_{x}' for n, x in product(self._options.top_n, _CATEGORIES)]
        names = [*words, *map(_name_ranking, _RANKING_FIGURES), *RETRIEVAL]
        at_ranks = [f'recall_at_{k}' for k in RECALL_RANKS]
        return [
            self._record(name, *scores.get(name, (None, 0)), mode=mode)
            for mode, scores in ((Mode.COMPAT, compat), (Mode.STRICT, strict))
            for name in (*names, *(at_ranks if mode is Mode.STRICT else ()))
        ]

    def _read_tiers(self, context: SuiteContext) -> TieredLabels:
        if self._options.tiers is not None:
            return read_tiers(self._options.tiers)
        tiers = build_tiers(context.ground_truth.graph, WordNet(self._options.wordnet))
        if context.output_directory is not None:
            write_tiers(tiers, context.output_directory / 'gt_categories.json')
        return tiers

    def _score(self, asked: QueriedMap, *, compat: bool) -> Scores:
        """Return the value of each metric in one mode, and the number that it is over."""
        gate, points = self._options.max_distance_m, asked.points(compat=compat)
        known = (asked.tiers, asked.prompts)
        found: dict[str, tuple[float | None, int]] = {}
        for n in self._options.top_n:
            frequency = openlex3d.top_n_frequency(
                points, asked.best[:, :n], *known, max_distance_m=gate, compat=compat
            )
            for name, share in openlex3d.list_category_shares(frequency):
                found[f'top{n}_{name}'] = share, len(points.rows)
        ranking = openlex3d.set_ranking(
            points, asked.cosines, *known, max_distance_m=gate, compat=compat
        )
        for figure in _RANKING_FIGURES:
            found[_name_ranking(figure)] = getattr(ranking, figure), ranking.objects
        per_mask = self._options.mask_alignment == 'per_mask'
        retrieval = asked.retrieval(compat=compat, max_distance_m=gate, per_mask=per_mask)
        if retrieval is None:
            return found
        precision = compat_average_precision if compat else strict_average_precision
        rank = compat_inverse_rank if compat else mean_reciprocal_rank
        values = {
            'map': mean_over_thresholds(retrieval, compat=compat),
            'ap50': precision(retrieval, 0.5),
            'ap25': precision(retrieval, 0.25),
            'inverse_rank': rank(retrieval),
            **{f'recall_at_{k}': recall_at_k(retrieval, k) for k in RECALL_RANKS},
        }
        return found | {name: (value, len(retrieval.wanted)) for name, value in values.items()}


def _name_ranking(figure: str) -> str:
    return 'set_ranking' if figure == 'overall' else f'set_ranking_{figure}'
