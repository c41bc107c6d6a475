"""Object map quality against a search through all pairings, and against BenchBot's own code."""

import importlib
import itertools
import math
import os
import sys

import numpy as np
import pytest

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.object_map_quality import (
    ADDED,
    ProposedBoxes,
    TrueBoxes,
    object_map_quality,
)

UPSTREAM = os.environ.get('OSMABENCH_OMQ')
FIGURES = ('omq', 'pairwise', 'label', 'spatial', 'fp_quality')


def random_case(seed, *, states):
    """Return up to five boxes on either side, some of them nearly the same."""
    rng = np.random.default_rng(seed)
    truths, proposals, classes = rng.integers(0, 6), rng.integers(0, 6), 4
    low = rng.uniform(0, 2, (truths, 3))
    boxes = np.stack([low, low + rng.uniform(0.2, 1.5, (truths, 3))], axis=1)
    low = rng.uniform(0, 2, (proposals, 3))
    said = np.stack([low, low + rng.uniform(0.2, 1.5, (proposals, 3))], axis=1)
    for i in range(min(truths, proposals)):
        if rng.random() < 0.6:
            said[i] = boxes[i] + rng.normal(0, 0.02, (1, 3))
    labels = rng.dirichlet(np.ones(classes), proposals)
    labels[rng.random(proposals) < 0.3] = np.eye(classes)[0]
    true = TrueBoxes(
        boxes,
        rng.integers(0, classes - 1, truths),
        rng.integers(0, 2, truths) if states else None,
        rng.random(truths) < 0.2,
    )
    state = rng.dirichlet(np.ones(3), proposals) if states else None
    return true, ProposedBoxes(said, labels.reshape(-1, classes), state)


def iou(a, b):
    shared = math.prod(max(0.0, min(a[1][k], b[1][k]) - max(a[0][k], b[0][k])) for k in range(3))
    own = [math.prod(box[1][k] - box[0][k] for k in range(3)) for box in (a, b)]
    return shared / (sum(own) - shared)


def searched(true, proposed):
    """Return the largest sum of qualities, and the OMQ of it, over all one-to-one pairings."""

    def quality(g, p):
        parts = [proposed.label_probs[p][true.classes[g]], iou(true.boxes[g], proposed.boxes[p])]
        if true.states is not None:
            parts.append(proposed.state_probs[p][true.states[g]])
        return math.prod(parts) ** (1 / len(parts))

    truths, proposals = range(len(true.boxes)), range(len(proposed.boxes))
    best = 0.0, ()
    for size in range(1, min(len(truths), len(proposals)) + 1):
        for rows in itertools.combinations(truths, size):
            for columns in itertools.permutations(proposals, size):
                pairs = tuple(zip(rows, columns, strict=True))
                total = sum(quality(*pair) for pair in pairs)
                if total > best[0] + 1e-9:
                    best = total, pairs
    pairs = [pair for pair in best[1] if quality(*pair) > 1e-6]
    cost = 0.0
    for p in set(proposals) - {p for _, p in pairs}:
        weights = [max(proposed.label_probs[p][:-1])]
        if true.states is not None and len(truths):
            weights.append(max(proposed.state_probs[p][:-1]))
        cost += math.prod(weights) ** (1 / len(weights))
    whole = len(pairs) + cost + len(truths) - len(pairs)
    return best[0] / whole if whole else 0.0


@pytest.mark.parametrize('states', [False, True])
def test_pairs_are_the_best_of_all_pairings(states: bool) -> None:
    for seed in range(40):
        true, proposed = random_case(seed, states=states)
        true = TrueBoxes(true.boxes, true.classes, true.states)
        assert object_map_quality(true, proposed).omq == pytest.approx(
            searched(true, proposed), abs=1e-5
        )


def test_a_right_box_of_half_the_confidence_and_a_made_up_one() -> None:
    box = np.array([[[0, 0, 0], [1, 1, 1]]], float)
    far = box + 5
    said = ProposedBoxes(
        np.concatenate([box, far]),
        np.array([[0.5, 0.0, 0.5], [0.0, 0.8, 0.2]]),
        np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]),
    )
    found = object_map_quality(TrueBoxes(box, np.array([0]), np.array([ADDED])), said)
    quality, cost = 0.25 ** (1 / 3), math.sqrt(0.8 * 0.3)
    assert found.omq == pytest.approx(quality / (1 + cost), abs=1e-6)
    assert (found.label, found.spatial, found.state) == pytest.approx((0.5, 1.0, 0.5))
    assert found.fp_quality == pytest.approx(1 - cost)
    assert (found.true_positives, found.false_positives, found.false_negatives) == (1, 1, 0)


def test_a_part_of_a_group_is_no_false_positive() -> None:
    box = np.array([[[0, 0, 0], [4, 1, 1]]], float)
    parts = np.array([[[0, 0, 0], [2.5, 1, 1]], [[2.5, 0, 0], [4, 1, 1]]], float)
    said = ProposedBoxes(parts, np.array([[1.0, 0.0], [1.0, 0.0]]))
    group = TrueBoxes(box, np.array([0]), groups=np.array([True]))
    assert object_map_quality(group, said).false_positives == 0
    assert object_map_quality(TrueBoxes(box, np.array([0])), said).false_positives == 1


def test_states_on_one_side_are_refused() -> None:
    true, proposed = random_case(3, states=True)
    with pytest.raises(MetricError, match='states are needed on both sides'):
        object_map_quality(TrueBoxes(true.boxes, true.classes), proposed)


@pytest.mark.skipif(UPSTREAM is None, reason='OSMABENCH_OMQ is not set to a clone of eval_omq')
@pytest.mark.parametrize('states', [False, True])
def test_figures_are_those_of_benchbots_code(states: bool, monkeypatch) -> None:
    monkeypatch.syspath_prepend(f'{UPSTREAM}/evaluation_methods')
    # Names that numpy has dropped since.
    monkeypatch.setattr(np, 'int', int, raising=False)
    monkeypatch.setattr(np, 'float', float, raising=False)
    omq = importlib.import_module('omq')
    assert omq.__file__.startswith(str(UPSTREAM)), sys.path
    for seed in range(300):
        true, proposed = random_case(seed, states=states)
        truths = [
            {
                'centroid': box.mean(axis=0), 'extent': box[1] - box[0],
                'class_id': int(true.classes[i]), 'isgroup': bool(true.groups[i]),
                **({'state': ('added', 'removed')[true.states[i]]} if states else {}),
            }
            for i, box in enumerate(true.boxes)
        ]  # fmt: skip
        said = [
            {
                'centroid': box.mean(axis=0), 'extent': box[1] - box[0],
                'label_probs': list(proposed.label_probs[i]),
                **({'state_probs': list(proposed.state_probs[i])} if states else {}),
            }
            for i, box in enumerate(proposed.boxes)
        ]  # fmt: skip
        judge = omq.OMQ(scd_mode=states)
        own = object_map_quality(true, proposed)
        theirs = (
            judge.score([(truths, said)]), judge.get_avg_overall_quality_score(),
            judge.get_avg_label_score(), judge.get_avg_spatial_score(), judge.get_avg_fp_score(),
        )  # fmt: skip
        assert tuple(getattr(own, name) for name in FIGURES) == pytest.approx(theirs, abs=1e-6)
        counts = own.true_positives, own.false_positives, own.false_negatives
        assert counts == judge.get_assignment_counts()
        if states:
            assert own.state == pytest.approx(judge.get_avg_state_score(), abs=1e-6)
