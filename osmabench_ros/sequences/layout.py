"""File layout of a recorded sequence, and the data common to its frames."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, SequenceError
from osmabench_ros.geometry.axes import World
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.labels import LabelSet

FORMAT = 'osmabench.sequence/1'
DOCUMENT = 'sequence.json'
CLASSES_FILE = 'embed_semseg_classes.json'
STAMPS_FILE = 'timestamps.txt'


class SequenceFormat(Strict):
    """The layout in which a method reads a sequence.

    Parameters
    ----------
    layout : str
        'osma' (Replica naming: results/frame*.jpg, depth*.png, traj.txt) or 'scannet' (color/,
        depth/, pose/, intrinsic/).
    world : World
        Axes of the poses; the method's map comes out in them.
    depth_scale : float
        Value of a depth pixel for one metre.
    color : str
        'jpg' or 'png', which loses nothing; most methods ask for jpg.
    """

    layout: Literal['osma', 'scannet']
    world: World
    depth_scale: float = Field(gt=0)
    color: Literal['jpg', 'png'] = 'jpg'


OSMA = SequenceFormat(layout='osma', world=World.HABITAT, depth_scale=6553.5)
"""What OSMa-Bench's generator writes."""
SCANNET = SequenceFormat(layout='scannet', world=World.Z_UP, depth_scale=1000.0)
"""What ScanNet's exporter writes."""

_PATTERNS = {
    'osma': {
        'color': 'results/frame{:06d}.{}',
        'depth': 'results/depth{:06d}.png',
        'semantic': 'results/semantic{:06d}.png',
        'instance': 'results/instance{:06d}.png',
    },
    'scannet': {
        'color': 'color/{}.{}',
        'depth': 'depth/{}.png',
        'semantic': 'label/{}.png',
        'instance': 'instance/{}.png',
    },
}


def image_path(form: SequenceFormat, kind: str, index: int) -> str:
    """Return the path of an image in its sequence; `kind` as in `Frame`, without unit."""
    return _PATTERNS[form.layout][kind].format(index, form.color)


@dataclass(frozen=True, eq=False)
class SequenceInfo:
    """Metadata of a sequence.

    Parameters
    ----------
    dataset, scene, condition : str
        Where the sequence comes from.
    label_set : LabelSet, optional
        Meaning of the semantic images; None if there are none.
    base_to_camera : Pose, optional
        Optical frame in base_link; None if the camera is on no robot.
    source_sha256 : str
        Digest of the configuration that made the sequence.
    """

    dataset: str = ''
    scene: str = ''
    condition: str = ''
    label_set: LabelSet | None = None
    base_to_camera: Pose | None = None
    source_sha256: str = ''


def write_info(directory: Path, info: SequenceInfo, form: SequenceFormat | None) -> None:
    """Write sequence.json, and the classes as OSMa-Bench keeps them; `form` is None for a bag."""
    mount = info.base_to_camera
    document = {
        'format': FORMAT,
        'dataset': info.dataset,
        'scene': info.scene,
        'condition': info.condition,
        'base_to_camera': None if mount is None else mount.matrix.tolist(),
        'source_sha256': info.source_sha256,
        'files': None if form is None else form.model_dump(mode='json'),
    }
    _write_json(directory / DOCUMENT, document)
    if info.label_set is not None:
        _write_json(directory / CLASSES_FILE, info.label_set.to_json())


def read_info(directory: Path) -> tuple[SequenceInfo, SequenceFormat | None]:
    """Read sequence.json, else use folder names; SequenceError if malformed."""
    path = directory / DOCUMENT
    labels = _read_classes(directory / CLASSES_FILE)
    if not path.exists():
        return SequenceInfo(directory.parent.name, directory.name, '', labels), None
    try:
        data = read_json(path, SequenceError)
        if data['format'] != FORMAT:
            raise SequenceError(f'{path}: format "{data["format"]}" is not "{FORMAT}"')
        mount, files = data['base_to_camera'], data['files']
        info = SequenceInfo(
            str(data['dataset']),
            str(data['scene']),
            str(data['condition']),
            labels,
            None if mount is None else Pose.from_matrix(mount),
            str(data['source_sha256']),
        )
        return info, None if files is None else SequenceFormat.model_validate(files)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SequenceError(f'{path} is malformed: {error!r}; write the sequence anew') from error


def _read_classes(path: Path) -> LabelSet | None:
    if not path.exists():
        return None
    try:
        data = read_json(path, SequenceError)
        return LabelSet.from_foreign(str(data.get('name', 'sequence')), data['classes'])
    except (ValueError, KeyError, TypeError, AttributeError, ConfigError) as error:
        raise SequenceError(
            f'{path} is malformed: {error}; it must be {{"classes": [{{"id": 1, "name": "…"}}]}}'
        ) from error


def _write_json(path: Path, data: Any) -> None:
    path.write_text(json.dumps(data, indent=1, sort_keys=True, allow_nan=False) + '\n', 'utf-8')
