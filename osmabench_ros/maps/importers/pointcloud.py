"""Importer of plain point clouds with labels."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.fence import read_in_fence
from osmabench_ros.errors import MapError, errors_as
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.point_files import read_ply
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers import source_files as source
from osmabench_ros.maps.importers.assembly import MapBuilder, Method, check_node_count
from osmabench_ros.maps.semantic_map import CHANNELS, DenseMap, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet, group_rows_by_id
from osmabench_ros.semantics.scene_graph import SceneNode, ScoredLabel


def read_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Return the columns of a point cloud, each (N,)."""
    if not path.is_file():
        raise MapError(f'{path} does not exist')
    if path.suffix.lower() != '.pcd':
        return read_ply(path)
    source.require('open3d', 'PCD files', 'geometry')
    columns: dict[str, NDArray[Any]] = read_in_fence(read_pcd, path, libraries=('open3d',))
    return columns


MAX_HEADER_LINES = 100


def read_pcd(path: Path) -> dict[str, NDArray[Any]]:
    """Read the columns of a PCD file, in the fence; MapError if it is none or empty."""
    import open3d

    _check_pcd(path)
    silence = open3d.utility.VerbosityContextManager(open3d.utility.VerbosityLevel.Error)
    with errors_as(MapError, f'{path} cannot be read as PCD', RuntimeError, ValueError), silence:
        cloud = dict(open3d.t.io.read_point_cloud(path).point.items())
    columns: dict[str, NDArray[Any]] = {}
    for name in sorted(cloud):
        values = cloud[name].numpy()
        parts = {'positions': 'xyz', 'colors': CHANNELS}.get(name)
        if parts is not None:
            columns |= {part: np.array(values[:, i]) for i, part in enumerate(parts)}
        elif values.ndim == 1 or values.shape[1] == 1:
            columns[name] = np.array(values).reshape(len(values))
    if not columns:
        raise MapError(f'{path} cannot be read as PCD, or has no points')
    return columns


def _check_pcd(path: Path) -> None:
    """Check what Open3D takes without an error: odd sizes in the header, and rows of text."""
    header: dict[str, list[str]] = {}
    with path.open('rb') as stream:
        for line in islice(stream, MAX_HEADER_LINES):
            key, *values = line.decode('ascii', 'replace').split() or ['']
            header[key] = values
            if key == 'DATA':
                break
        if 'VERSION' not in header:
            raise MapError(f'{path} is not a PCD file: it has no VERSION line')
        for key in ('WIDTH', 'HEIGHT', 'POINTS'):
            if key in header and not ''.join(header[key]).isdigit():
                raise MapError(f'{path}: {key} is "{" ".join(header[key])}", not a whole number')
        if header.get('DATA') == ['ascii']:
            with errors_as(MapError, f'{path}: a row is malformed', ValueError):
                rows = np.loadtxt(stream, ndmin=2)
            expected = int(header.get('POINTS', ['-1'])[0])
            if len(rows) != expected >= 0:
                raise MapError(f'{path} has {len(rows)} rows, and POINTS is {expected}')


METHOD = Method('pointcloud', World.Z_UP)
LABEL_COLUMNS = (
    'label', 'labels', 'class', 'class_id', 'semantic', 'semantic_id', 'scalar_label',
    'scalar_Label', 'scalar_class',
)  # fmt: skip
INSTANCE_COLUMNS = (
    'instance', 'instances', 'instance_id', 'object_id', 'objectId', 'scalar_instance',
    'scalar_Instance',
)  # fmt: skip
_CLASS_FILES = ('classes.json', 'embed_semseg_classes.json')


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a PLY or PCD file with labels and instances, or without; by default z up.

    `path` is the file, or a folder with one. A property `label` (or `class`, `semantic`, ...)
    holds class ids, `instance` (or `object_id`, ...) instance ids, 0 or less for none. The
    meaning of the ids is in the options' label set, or in `classes.json` next to the file:
    ``{"classes": [{"id": 1, "name": "chair"}]}``. There is one node per instance, named by the
    majority of its points. -1 and 65535 are unlabelled, and so is 0 if it is not a class.
    """
    file = source.find_file(path, ('*.ply', '*.pcd'), 'point cloud')
    columns = read_columns(file)
    builder = MapBuilder(METHOD, options)
    points, (colors, labels, instances) = builder.place_cloud(
        *source.get_points_and_colors(columns, file),
        find_column(columns, LABEL_COLUMNS),
        find_column(columns, INSTANCE_COLUMNS),
    )
    class_file = None if options.label_set is not None else find_class_file(file)
    label_set = options.label_set if class_file is None else read_label_set(class_file)
    if labels is not None:
        if label_set is None:
            remedy = f'give a label set, or put {_CLASS_FILES[0]} next to it'
            raise MapError(f'{file} has labels, but their meaning is unknown; {remedy}')
        labels = check_ids(labels, f'{file}: a label')
        labels = np.where(labels == -1, UNLABELLED, labels)
        labels = mark_unlabelled(labels, label_set)
        label_set.check(labels, str(file))
    if instances is not None:
        instances = np.maximum(check_ids(instances, f'{file}: an instance'), 0)
    dense = DenseMap(points, colors, labels, instances)
    return builder.build(
        make_instance_nodes(dense, label_set),
        dense=dense,
        source_sha256=source.hash_files(file, class_file),
        label_set=label_set,
    )


def find_column(columns: Mapping[str, NDArray[Any]], names: Sequence[str]) -> NDArray[Any] | None:
    """Return the first of some columns that is there, None without any."""
    return next((columns[name] for name in names if name in columns), None)


def mark_unlabelled(labels: NDArray[np.int32], label_set: LabelSet | None) -> NDArray[np.int32]:
    """Return labels in which 0 means unlabelled, unless it is a class."""
    if label_set is not None and 0 in label_set.by_id:
        return labels
    return np.where(labels == 0, UNLABELLED, labels).astype(np.int32)


def find_class_file(file: Path) -> Path | None:
    """Return the file with the names of the labels of a point cloud, None without one."""
    return next(filter(Path.is_file, map(file.with_name, _CLASS_FILES)), None)


def read_label_set(path: Path) -> LabelSet:
    """Read the classes of a JSON file, ``{"classes": [{"id": ..., "name": ...}]}``."""
    caught = (KeyError, TypeError, ValueError, AttributeError)
    what = f'{path} must hold "classes", each with "id" and "name"'
    with errors_as(MapError, what, caught):
        return LabelSet.from_foreign(path.stem, source.read_json(path)['classes'])


def check_ids(values: NDArray[Any], what: str) -> NDArray[np.int32]:
    """Return ids as whole numbers; MapError, which begins with `what`, if they are none."""
    limits = np.iinfo(np.int32)
    bounded = np.clip(np.nan_to_num(values), limits.min, limits.max)
    whole: NDArray[np.int32] = bounded.astype(np.int32)
    if not np.array_equal(whole, values):
        raise MapError(f'{what} is not a whole number of 32 bits; number them again')
    return whole


def make_instance_nodes(dense: DenseMap, label_set: LabelSet | None) -> tuple[SceneNode, ...]:
    """Return one node per instance, with the box of its points and their majority label."""
    if dense.instances is None:
        return ()
    rows = group_rows_by_id(dense.instances)
    check_node_count(len(rows), METHOD.name)
    nodes = []
    for instance, members in rows.items():
        if instance > 0:
            box = AxisAlignedBox.around(dense.points[members])
            labels = _count_votes(dense.labels, members, label_set)
            nodes.append(SceneNode(instance, labels=labels, box=box, source_id=str(instance)))
    return tuple(nodes)


def _count_votes(
    labels: NDArray[np.int32] | None, members: NDArray[np.intp], label_set: LabelSet | None
) -> tuple[ScoredLabel, ...]:
    if labels is None or label_set is None:
        return ()
    ids, counts = np.unique(labels[members], return_counts=True)
    best = int(ids[np.argmax(counts)])
    if best == UNLABELLED:
        return ()
    return (ScoredLabel(label_set.name_of(best), float(counts.max() / len(members)), best),)
