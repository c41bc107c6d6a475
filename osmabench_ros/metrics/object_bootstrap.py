"""What one scene alone can tell: intervals over its objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.statistics import Interval, bootstrap_interval


def macc_over_objects(
    labels: NDArray[np.integer],
    instances: NDArray[np.integer],
    correct: NDArray[np.bool_],
    *,
    seed: int = 0,
    resamples: int = 2_000,
) -> Interval:
    """Return mAcc with an interval from resampling the objects of a scene.

    Points of one object are right or wrong together, so objects are drawn, not points. In a
    resample, classes none of whose objects were drawn leave the mean.

    Parameters
    ----------
    labels, instances : ndarray of int, shape (N,)
        Class and instance of each true point that is scored.
    correct : ndarray of bool, shape (N,)
        Whether its class was predicted.
    seed : int
        Seed of the resampling.
    resamples : int
        Number of resamples.

    Returns
    -------
    Interval
        Of unit 'objects': it says how much the figure hangs on single objects of this scene,
        not how another scene would fare.
    """
    if not labels.shape == instances.shape == correct.shape:
        raise MetricError(
            f'{labels.shape} labels, {instances.shape} instances and {correct.shape} verdicts'
        )
    _, things = np.unique(instances, return_inverse=True)
    names, kind = np.unique(labels, return_inverse=True)
    # An object whose points have several classes counts as one of each.
    objects, owner = np.unique(things * max(len(names), 1) + kind, return_inverse=True)
    classes = objects % max(len(names), 1)
    hits = np.bincount(owner, weights=correct, minlength=len(objects))
    points = np.bincount(owner, minlength=len(objects))
    kinds = len(names)

    def statistic(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        place = rows[..., 0].astype(np.int64) + kinds * np.arange(len(rows))[:, None]
        found, total = (
            np.bincount(place.ravel(), rows[..., k].ravel(), kinds * len(rows)) for k in (1, 2)
        )
        with np.errstate(invalid='ignore'):
            return np.asarray(np.nanmean((found / total).reshape(len(rows), kinds), axis=1))

    rows = np.stack([classes, hits, points], axis=1).astype(np.float64)
    return bootstrap_interval(
        rows, statistic=statistic, unit='objects', seed=seed, resamples=resamples
    )
