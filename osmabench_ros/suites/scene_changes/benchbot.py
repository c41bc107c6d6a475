"""Results of BenchBot's semantic SLAM and scene change tasks, scored as its code does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.object_map_quality import (
    ADDED,
    REMOVED,
    ObjectMapQuality,
    ProposedBoxes,
    TrueBoxes,
    filled,
    object_map_quality,
)

BACKGROUND = 'background'
WITH_STATES = 'object_map_with_states'
_BACKGROUND_NAMES = {'none': BACKGROUND, 'bg': BACKGROUND, '__background__': BACKGROUND}

_Triple = tuple[float, float, float]


class _Part(BaseModel):
    model_config = ConfigDict(extra='ignore', frozen=True)


class _Proposal(_Part):
    centroid: _Triple
    extent: _Triple
    label_probs: tuple[float, ...]
    state_probs: tuple[float, ...] = ()


class _Results(_Part):
    class_list: tuple[str, ...] = ()
    objects: tuple[_Proposal, ...] = ()


class _Task(_Part):
    results_format: str = 'object_map'


class _Submission(_Part):
    task_details: _Task = Field(default_factory=_Task)
    results: _Results


class _TrueObject(_Part):
    model_config = ConfigDict(extra='allow', frozen=True)  # equal if all of it is

    class_name: str = Field(alias='class')
    centroid: _Triple
    extent: _Triple
    isgroup: bool = False


class _Truth(_Part):
    objects: tuple[_TrueObject, ...]
    class_list: tuple[str, ...] = ()
    synonyms: Mapping[str, str] = Field(default_factory=lambda: dict(_BACKGROUND_NAMES))


class _Environment(_Part):
    object_labels: tuple[str, ...] = ()


class _TruthFile(_Part):
    environment: _Environment = Field(default_factory=_Environment)
    ground_truth: _Truth


def score_benchbot(results: Path, truths: Sequence[Path]) -> ObjectMapQuality:
    """Return the object map quality of a results file of BenchBot.

    Results of the format ``object_map_with_states`` are of scene change detection and need two
    truths, before and after; else it is an object map with one. Another number of truths, or a
    malformed file, is a MetricError. As in BenchBot's code, classes that the truth does not know
    count as background, distributions of sum above 1 are scaled, of less are filled up with
    background or the state unchanged, and what changed is each object that is in one truth and not
    equally in the other.
    """
    said = validated(_Submission, read_json(results, MetricError), str(results), MetricError)
    known = [
        validated(_TruthFile, read_json(path, MetricError), str(path), MetricError)
        for path in truths
    ]
    by_state = said.task_details.results_format == WITH_STATES
    if len(known) != (2 if by_state else 1):
        raise MetricError(
            f'{results}: results of format "{said.task_details.results_format}" are scored '
            f'against {"two truths, before and after" if by_state else "one truth"}, '
            f'not {len(known)}; name them with --truth'
        )
    classes = _Classes(known)
    return object_map_quality(
        _true_boxes(known, classes, str(truths[0]), by_state=by_state),
        _proposed(said.results, classes, str(results), by_state=by_state),
    )


class _Classes:
    """Columns of class names, in alphabetical order and the background last."""

    def __init__(self, truths: Sequence[_TruthFile]) -> None:
        names: set[str] = set()
        for item in truths:
            own = item.ground_truth.class_list or item.environment.object_labels
            names.update(own or [thing.class_name for thing in item.ground_truth.objects])
        self._synonyms = truths[0].ground_truth.synonyms
        ordered = [*sorted(names - {BACKGROUND}), BACKGROUND]
        self._columns = {name: column for column, name in enumerate(ordered)}

    def __len__(self) -> int:
        return len(self._columns)

    def column(self, name: str) -> int | None:
        """Return the column of a class or a synonym of one, None if there is none."""
        name = name.lower()
        return self._columns.get(name, self._columns.get(self._synonyms.get(name, '')))


def _true_boxes(
    truths: Sequence[_TruthFile], classes: _Classes, source: str, *, by_state: bool
) -> TrueBoxes:
    objects, states = list(truths[0].ground_truth.objects), None
    if by_state:
        before, after = (item.ground_truth.objects for item in truths)
        gone = [item for item in before if item not in after]
        come = [item for item in after if item not in before]
        objects = gone + come
        states = np.array([REMOVED] * len(gone) + [ADDED] * len(come), np.int64)
    columns = [classes.column(item.class_name) for item in objects]
    if None in columns:
        name = objects[columns.index(None)].class_name
        raise MetricError(f'{source}: class "{name}" is not in the class_list of the truth')
    return TrueBoxes(
        _boxes(objects),
        np.array(columns, np.int64),
        states,
        np.array([item.isgroup for item in objects], bool),
    )


def _boxes(objects: Sequence[_TrueObject | _Proposal]) -> NDArray[np.float64]:
    middles = np.array([item.centroid for item in objects]).reshape(-1, 3)
    halves = np.array([item.extent for item in objects]).reshape(-1, 3) / 2
    return np.stack([middles - halves, middles + halves], axis=1)


def _proposed(
    results: _Results, classes: _Classes, source: str, *, by_state: bool
) -> ProposedBoxes:
    labels = np.zeros((len(results.objects), len(classes)))
    states = np.zeros((len(results.objects), 3))
    columns = [classes.column(name) for name in results.class_list]
    for number, item in enumerate(results.objects):
        where = f'{source}: object {number}'
        if len(item.label_probs) != len(columns):
            raise MetricError(
                f'{where} has {len(item.label_probs)} label_probs, and class_list '
                f'{len(columns)} names; each name needs one'
            )
        for column, value in zip(columns, item.label_probs, strict=True):
            labels[number, -1 if column is None else column] += value
        if by_state:
            if len(item.state_probs) != 3:
                raise MetricError(f'{where} needs three state_probs: added, removed, unchanged')
            states[number] = item.state_probs
    return ProposedBoxes(_boxes(results.objects), filled(labels), filled(states) if by_state
                         else None)  # fmt: skip
