"""Scene-graph metrics: labels, boxes, attributes and relations of matched nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from osmabench_ros.metrics.matching import NodeMatches
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import RelationType, SceneEdge, SceneGraph, SceneNode

# Called with a predicted and a true label; returns whether they mean the same.
SameLabel = Callable[[str, str], bool]

# Relations without a direction.
SYMMETRIC = frozenset({RelationType.NEXT_TO.value, RelationType.NEAR.value})

# Relation names of other methods that mean a relation here with source and target exchanged.
INVERSE = {'above': 'under', 'contains': 'in', 'supports': 'on', 'has part': 'part of'}

# Relation names of other methods that mean a relation of this package.
SYNONYMS = {
    'on top of': 'on',
    'standing on': 'on',
    'lying on': 'on',
    'inside': 'in',
    'inside of': 'in',
    'within': 'in',
    'below': 'under',
    'beneath': 'under',
    'underneath': 'under',
    'beside': 'next to',
    'adjacent to': 'next to',
    'close to': 'near',
    'hanging on': 'attached to',
    'mounted on': 'attached to',
    'belongs to': 'part of',
}


@dataclass(frozen=True)
class Share:
    """A part of a whole.

    Parameters
    ----------
    hits : float
        0 <= hits <= n; a whole number, or the expected one where chance decides.
    n : int
        The whole.
    """

    hits: float
    n: int

    @property
    def value(self) -> float:
        """Return hits / n in [0, 1], higher is better; NaN if n is 0."""
        return self.hits / self.n if self.n else math.nan

    @classmethod
    def of(cls, verdicts: Iterable[bool]) -> Share:
        """Count verdicts."""
        verdicts = list(verdicts)
        return cls(sum(verdicts), len(verdicts))


def exactly(predicted: str, true: str) -> bool:
    """Return whether two labels are equal apart from case, spaces and underscores."""
    return normalised_name(predicted) == normalised_name(true)


def label_accuracy(
    matches: NodeMatches, predicted: SceneGraph, true: SceneGraph, same: SameLabel = exactly
) -> Share:
    """Return the fraction of matched nodes with a best label that means the true one.

    A matched node without a label is wrong. In [0, 1], higher is better.
    """
    return Share.of(
        bool(predicted.by_id[p].label) and same(predicted.by_id[p].label, true.by_id[t].label)
        for p, t in matches.pairs
    )


def attribute_accuracy(
    matches: NodeMatches,
    predicted: SceneGraph,
    true: SceneGraph,
    keys: Sequence[str],
    same: SameLabel = exactly,
) -> dict[str, Share]:
    """Return the share of matched nodes with the right value, for each attribute.

    Nodes with an unknown true value leave the denominator; a matched node that lacks a known
    attribute is wrong. An attribute that the map gives for no node at all is left out of the
    result: the method does not provide it. In [0, 1], higher is better.
    """
    given = {key for node in predicted.nodes for key in node.attributes}
    return {
        key: Share.of(
            _is_same_value(predicted.by_id[p], true.by_id[t], key, same)
            for p, t in matches.pairs
            if key in true.by_id[t].attributes
        )
        for key in keys
        if key in given
    }


def _is_same_value(predicted: SceneNode, true: SceneNode, key: str, same: SameLabel) -> bool:
    value = predicted.attributes.get(key)
    wanted = true.attributes[key]
    if isinstance(value, str) and isinstance(wanted, str):
        return same(value, wanted)
    return value is not None and value == wanted


@dataclass(frozen=True)
class RelationScores:
    """Relations of a map against the true ones.

    Parameters
    ----------
    precision : Share
        Of the predicted relations of a known kind, those that hold; one that ends at an unmatched
        node does not.
    recall : Share
        Of the true relations, those that were predicted between the right nodes.
    recall_at : mapping of int to Share
        Recall of the k relations with the highest scores: at most k / n of n true relations.
    normalised_recall_at : mapping of int to Share
        The same hits of the min(k, n) that k relations can hit, so that 1 can be reached.
    mean_recall : Share
        Sum of the recalls of all kinds of relation that are true somewhere, of their number; a
        rare kind weighs as much as a frequent one.
    mean_recall_at : mapping of int to Share
        The same of the k relations with the highest scores (mR@k).
    triplet_recall : Share
        As recall, and both ends have the right label.
    f1 : float
        Harmonic mean of precision and recall; NaN if nothing is predicted and nothing is true.
    average_precision : float
        Mean, over all true relations, of the precision at the rank of each that was found.
    unmatched : int
        Predicted relations that end at an unmatched node.
    unknown : int
        Predicted relations with a name that is neither a `RelationType` nor a synonym; left out.
    """

    precision: Share
    recall: Share
    recall_at: Mapping[int, Share]
    normalised_recall_at: Mapping[int, Share]
    mean_recall: Share
    mean_recall_at: Mapping[int, Share]
    triplet_recall: Share
    f1: float
    average_precision: float
    unmatched: int
    unknown: int


Triple = tuple[int, str, int]
_NOWHERE: Triple = (0, '', 0)


def find_canonical_relation(source: int, name: str, target: int) -> Triple | None:
    """Return a relation under its name in this package, None if the name is unknown.

    Parameters
    ----------
    source, target : int
        Node ids; exchanged for relations such as "above", ordered for symmetric ones.
    name : str
        For example ``'on top of'``.
    """
    name = normalised_name(name)
    if name in INVERSE:
        source, name, target = target, INVERSE[name], source
    name = SYNONYMS.get(name, name)
    if name not in {item.value for item in RelationType}:
        return None
    if name in SYMMETRIC and source > target:
        source, target = target, source
    return source, name, target


def score_relations(
    matches: NodeMatches,
    predicted: SceneGraph,
    true: SceneGraph,
    *,
    same: SameLabel = exactly,
    considered: Iterable[int] | None = None,
    kinds: Iterable[str] | None = None,
    ks: Sequence[int] = (20, 50, 100),
    doubtful: Iterable[SceneEdge] = (),
) -> RelationScores:
    """Score relations between nodes; a relation counts once however often it was predicted.

    Parameters
    ----------
    matches : NodeMatches
        Which predicted node matches which true one.
    predicted, true : SceneGraph
        The graphs.
    same : callable
        Returns whether a predicted label means a true one.
    considered : iterable of int, optional
        True nodes that count, such as those that were seen; all by default.
    kinds : iterable of str, optional
        Relations that count, by their names in this package; all by default.
    ks : sequence of int
        Ranks of recall@k. Relations without a score rank last. Of equal scores the wrong ones
        come first, whatever the order of the file, so that a constant score gains nothing.
    doubtful : iterable of SceneEdge
        Relations between true nodes that count neither as right nor as wrong nor as missed.

    Notes
    -----
    Recall@k counts hits among the k best predictions over all true relations (Lu et al., Visual
    Relationship Detection, 2016), mean recall averages it over kinds (Chen et al., 2019; Tang et
    al., 2019), here for one graph.
    """
    nodes = None if considered is None else frozenset(considered)
    wanted_kinds = None if kinds is None else frozenset(kinds)
    open_ones = _list_triples(doubtful, nodes, wanted_kinds)
    wanted = _list_triples(true.edges, nodes, wanted_kinds) - open_ones
    places, unknown = _rank_triples(predicted, matches.true_of, wanted_kinds)
    places = [
        (score, triple)
        for score, triple in places
        if triple is None
        or (triple not in open_ones and (nodes is None or {triple[0], triple[2]} <= nodes))
    ]
    places.sort(key=lambda place: (-place[0], place[1] in wanted, place[1] or _NOWHERE))
    ranked = [triple for _, triple in places]
    hits = [triple in wanted for triple in ranked]
    of_kinds = _group_by_kind(wanted)
    found = {
        k: {
            kind: Share.of(item in best for item in true_ones)
            for kind, true_ones in of_kinds.items()
        }
        for k in (*ks, len(ranked))
        for best in (frozenset(ranked[:k]),)
    }
    of_k = {k: sum(share.hits for share in found[k].values()) for k in ks}
    # The kinds come from a set, without an order, on which a plain sum depends.
    means = {k: Share(math.fsum(s.value for s in of.values()), len(of)) for k, of in found.items()}
    labelled = {t for p, t in matches.pairs if same(predicted.by_id[p].label, true.by_id[t].label)}
    right = sum(
        triple is not None and triple in wanted and {triple[0], triple[2]} <= labelled
        for triple in ranked
    )
    total = len(hits) + len(wanted)
    ranks = [rank for rank, hit in enumerate(hits, start=1) if hit]
    precisions = [n / rank for n, rank in enumerate(ranks, start=1)]
    return RelationScores(
        Share(sum(hits), len(hits)),
        Share(sum(hits), len(wanted)),
        {k: Share(of_k[k], len(wanted)) for k in ks},
        {k: Share(of_k[k], min(k, len(wanted))) for k in ks},
        means[len(ranked)],
        {k: means[k] for k in ks},
        Share(right, len(wanted)),
        2 * sum(hits) / total if total else math.nan,
        math.fsum(precisions) / len(wanted) if wanted else math.nan,
        ranked.count(None),
        unknown,
    )


def _group_by_kind(triples: Iterable[Triple]) -> dict[str, set[Triple]]:
    found: dict[str, set[Triple]] = {}
    for triple in triples:
        found.setdefault(triple[1], set()).add(triple)
    return found


def _list_triples(
    edges: Iterable[SceneEdge], nodes: frozenset[int] | None, kinds: frozenset[str] | None
) -> frozenset[Triple]:
    triples = (find_canonical_relation(edge.source, edge.type, edge.target) for edge in edges)
    return frozenset(
        triple
        for triple in triples
        if triple is not None
        and (nodes is None or {triple[0], triple[2]} <= nodes)
        and (kinds is None or triple[1] in kinds)
    )


def _rank_triples(
    graph: SceneGraph, true_of: Mapping[int, int], kinds: frozenset[str] | None
) -> tuple[list[tuple[float, Triple | None]], int]:
    """Return unique predicted relations between true ids with their scores, best first.

    None is in the place of a relation that ends at an unmatched node. The second value is the
    number of relations with an unknown name.
    """
    found: dict[Triple, float] = {}
    unknown = 0
    for edge in sorted(graph.edges, key=_score, reverse=True):
        triple = find_canonical_relation(edge.source, edge.type, edge.target)
        if triple is None:
            unknown += 1
        elif kinds is None or triple[1] in kinds:
            found.setdefault(triple, _score(edge))
    return [(score, _of_true(triple, true_of)) for triple, score in found.items()], unknown


def _of_true(triple: Triple, true_of: Mapping[int, int]) -> Triple | None:
    source, name, target = triple
    if source not in true_of or target not in true_of:
        return None
    return find_canonical_relation(true_of[source], name, true_of[target])


def _score(edge: SceneEdge) -> float:
    return -math.inf if math.isnan(edge.score) else edge.score
