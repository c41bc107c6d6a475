"""A frame with the masks of a few objects."""

import sys

import numpy as np

from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.mapper import make_mapper
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

LABELS = LabelSet.from_names('small', ['chair', 'table', 'wall'], structure=['wall'], first_id=4)
CAMERA = Intrinsics(40, 30, 30.0, 30.0, 19.5, 14.5)


def furnished(index=0):
    """Two chairs and a table before a wall; a row without a class."""
    semantic = np.full((30, 40), LABELS.id_of('wall'), np.uint16)
    instance = np.full((30, 40), 1, np.int32)
    for number, name, part in (
        (2, 'chair', (slice(5, 15), slice(2, 9))),
        (3, 'chair', (slice(5, 15), slice(20, 30))),
        (4, 'table', (slice(18, 25), slice(10, 35))),
    ):
        semantic[part], instance[part] = LABELS.id_of(name), number
    semantic[29], instance[29] = UNLABELLED, 0
    color = np.random.default_rng(0).integers(0, 255, (30, 40, 3)).astype(np.uint8)
    return Frame(
        index, index * 40_000_000, Pose.identity(), CAMERA, color,
        np.ones((30, 40), np.float32), semantic, instance,
    )  # fmt: skip


def map_true_masks(method, folder, *, frames):
    """Return the map that a program in a folder makes of the true masks of some frames."""
    variables = {'python': sys.executable, 'root': str(folder)}
    options = {'method': method, 'work': str(folder / 'work'), 'variables': variables}
    mapper = make_mapper('offline_true_masks', label_set=LABELS, seed=4, options=options)
    for index in range(frames):
        mapper.integrate(furnished(index))
    return mapper.semantic_map(final=True)
