"""The layouts of a recorded sequence, and its files: images, intrinsics, poses, common data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import yaml
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, TypeAdapter

from osmabench_ros.base.documents import read_json, read_text, read_yaml
from osmabench_ros.base.files import write_json
from osmabench_ros.base.images import read_image
from osmabench_ros.base.strict import JsonForm, Strict, validated
from osmabench_ros.errors import ConfigError, SequenceError, errors_as
from osmabench_ros.geometry.axes import World
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, format_stamp, format_tum
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

DOCUMENT = 'sequence.json'
CLASSES_FILE = 'embed_semseg_classes.json'
STAMPS_FILE = 'timestamps.txt'


class SequenceFormat(Strict):
    """The layout in which a method reads a sequence.

    Parameters
    ----------
    layout : str
        'osma' (Replica naming: results/frame*.jpg, depth*.png, traj.txt), 'scannet' (color/,
        depth/, pose/, intrinsic/), or 'tum' (rgb_sync/ and depth_sync/ with stamps as names,
        groundtruth.txt), which is written for methods and not read.
    world : World
        Axes of the poses; the method's map comes out in them.
    depth_scale : float
        Value of a depth pixel for one metre.
    color : str
        'jpg' or 'png', which loses nothing; most methods ask for jpg.
    """

    layout: Literal['osma', 'scannet', 'tum']
    world: World
    depth_scale: float = Field(gt=0)
    color: Literal['jpg', 'png'] = 'jpg'


# What OSMa-Bench's generator writes.
OSMA = SequenceFormat(layout='osma', world=World.HABITAT, depth_scale=6553.5)
# What ScanNet's exporter writes.
SCANNET = SequenceFormat(layout='scannet', world=World.Z_UP, depth_scale=1000.0)

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
    # Of images that RTAB-Map's copy of TUM's associate.py has paired.
    'tum': {'color': 'rgb_sync/{2}.{1}', 'depth': 'depth_sync/{2}.png'},
}


def image_path(form: SequenceFormat, kind: str, index: int, stamp_ns: int = 0) -> str:
    """Return the path of an image in its sequence; `kind` as in `Frame`, without unit."""
    return _PATTERNS[form.layout][kind].format(index, form.color, format_stamp(stamp_ns))


_MATRIX_ROWS = JsonForm(list[list[float]], Pose.from_matrix, lambda pose: pose.matrix.tolist())


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
    base_to_camera: Annotated[Pose, _MATRIX_ROWS] | None = None
    source_sha256: str = ''


class RecordedSequence(Protocol):
    """Frames that were recorded, in a folder or a bag."""

    info: SequenceInfo
    # Camera of all frames.
    intrinsics: Intrinsics
    # Stamps of the frames, ascending.
    stamps_ns: Sequence[int]
    # Camera poses of all frames in the z-up world.
    poses: Sequence[Pose]
    description: str

    def __len__(self) -> int:
        return len(self.poses)

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames in order of time."""


_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, ConfigError)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Document(SequenceInfo):
    """sequence.json, without the label set; without `files` the sequence is a bag."""

    format: Literal['osmabench.sequence/1'] = 'osmabench.sequence/1'
    files: SequenceFormat | None


def write_info(directory: Path, info: SequenceInfo, form: SequenceFormat | None) -> None:
    """Write sequence.json, and the classes as OSMa-Bench keeps them; `form` is None for a bag."""
    document = _Document(**vars(info), files=form)
    data = TypeAdapter(_Document).dump_python(document, mode='json', exclude={'label_set'})
    write_json(directory / DOCUMENT, data)
    if info.label_set is not None:
        write_json(directory / CLASSES_FILE, info.label_set.to_json())


def read_info(directory: Path) -> tuple[SequenceInfo, SequenceFormat | None]:
    """Read sequence.json, else use folder names; SequenceError if malformed."""
    path = directory / DOCUMENT
    labels = _read_classes(directory / CLASSES_FILE)
    if not path.exists():
        return SequenceInfo(directory.parent.name, directory.name, '', labels), None
    data, remedy = read_json(path, SequenceError), 'write the sequence again'
    document: _Document = validated(
        _Document, data, f'{path} is malformed', SequenceError, remedy=remedy
    )
    return replace(document, label_set=labels), document.files


def _read_classes(path: Path) -> LabelSet | None:
    if not path.exists():
        return None
    remedy = 'it must be {"classes": [{"id": 1, "name": "…"}]}'
    data = read_json(path, SequenceError)
    with errors_as(SequenceError, f'{path} is malformed', *_MALFORMED, remedy=remedy):
        return LabelSet.from_foreign(str(data.get('name', 'sequence')), data['classes'])


_OSMA_CAMERA = 'camera_params.yaml'
_OSMA_TRAJECTORY = 'traj.txt'
_FOCAL = ('fx', 'fy', 'cx', 'cy')


def make_texts(
    form: SequenceFormat, camera: Intrinsics, poses: Sequence[Pose], stamps_ns: Sequence[int]
) -> dict[str, str]:
    """Return camera, stamps and poses, in the axes of the format's world, as texts by path."""
    to_axes = Pose(form.world.rotation.T, np.zeros(3))
    placed = [to_axes @ pose for pose in poses]
    texts = {STAMPS_FILE: ''.join(f'{stamp_ns}\n' for stamp_ns in stamps_ns)}
    if form.layout == 'scannet':
        intrinsic = np.eye(4)
        intrinsic[:3, :3] = camera.matrix
        for kind in ('color', 'depth'):
            texts[f'intrinsic/intrinsic_{kind}.txt'] = _matrix_text(intrinsic)
            texts[f'intrinsic/extrinsic_{kind}.txt'] = _matrix_text(np.eye(4))
        matrices = {f'pose/{i}.txt': _matrix_text(pose.matrix) for i, pose in enumerate(placed)}
        return texts | matrices
    params = {
        'image_height': camera.height,
        'image_width': camera.width,
        **{name: float(getattr(camera, name)) for name in _FOCAL},
        'png_depth_scale': float(form.depth_scale),
        'crop_edge': 0,
    }
    texts[_OSMA_CAMERA] = yaml.safe_dump({'camera_params': params})
    if form.layout == 'tum':
        path = StampedTrajectory.from_poses(zip(stamps_ns, placed, strict=True))
        texts['groundtruth.txt'] = format_tum(path)
    else:
        lines = (_matrix_text(pose.matrix.reshape(1, 16)) for pose in placed)
        texts[_OSMA_TRAJECTORY] = ''.join(lines)
    return texts


def read_camera(directory: Path, form: SequenceFormat) -> tuple[Intrinsics, float]:
    """Return intrinsics and depth scale; SequenceError if file or key is missing or wrong."""
    if form.layout == 'osma':
        path = directory / _OSMA_CAMERA
        data = read_yaml(path, SequenceError)
        remedy = 'it must hold camera_params with image_width, image_height, fx, fy, cx, cy and '
        remedy += 'png_depth_scale'
        with errors_as(SequenceError, str(path), *_MALFORMED, remedy=remedy):
            params = data['camera_params']
            size = int(params['image_width']), int(params['image_height'])
            focal = [float(params[name]) for name in _FOCAL]
            return Intrinsics(*size, *focal), float(params['png_depth_scale'])
    path = directory / 'intrinsic' / 'intrinsic_depth.txt'
    height, width = read_16_bit(directory / image_path(form, 'depth', 0)).shape
    matrix = _read_matrix(read_text(path, SequenceError), str(path))
    with errors_as(SequenceError, str(path), ValueError):
        focal = [matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]]
        return Intrinsics(width, height, *focal), form.depth_scale


def read_poses(directory: Path, form: SequenceFormat) -> list[Pose]:
    """Return the optical frames in the z-up world; SequenceError names a frame without a pose."""
    if form.layout == 'osma':
        path = directory / _OSMA_TRAJECTORY
        lines = filter(str.strip, read_text(path, SequenceError).splitlines())
        texts = [(f'{path}, line {index + 1}', line) for index, line in enumerate(lines)]
    else:
        count = len(list((directory / 'pose').glob('*.txt')))
        paths = [directory / 'pose' / f'{index}.txt' for index in range(count)]
        texts = [(str(path), read_text(path, SequenceError)) for path in paths]
    to_world = Pose(form.world.rotation, np.zeros(3))
    remedy = 'a pose is a row-major 4 x 4 matrix, camera to world; take frames without a pose '
    remedy += 'out of the sequence'
    poses = []
    for index, (source, text) in enumerate(texts):
        where = f'{source}, frame {index}'
        with errors_as(SequenceError, where, ValueError, remedy=remedy):
            poses.append(to_world @ Pose.from_matrix(_read_matrix(text, where)))
    return poses


def _read_matrix(text: str, source: str) -> NDArray[np.float64]:
    with errors_as(SequenceError, f'{source} must hold 4 x 4 numbers', ValueError):
        return np.array(text.split(), np.float64).reshape(4, 4)


def _matrix_text(matrix: NDArray[np.float64]) -> str:
    return ''.join(' '.join(repr(float(value)) for value in row) + '\n' for row in matrix)


SATURATED = 65535
# More compression of PNG costs time and hardly saves space in synthetic images.
_SAVING: dict[str, dict[str, Any]] = {
    '.jpg': {'quality': 95, 'subsampling': 0},
    '.png': {'compress_level': 1},
}


def encode_depth(depth_m: NDArray[np.floating], scale: float) -> NDArray[np.uint16]:
    """Return depth pixels; 0 where there is none, or it is too far for 16 bits: no wall."""
    with np.errstate(invalid='ignore'):
        values = np.rint(depth_m.astype(np.float64) * scale)
        usable = (values > 0) & (values < SATURATED)
    return np.where(usable, values, 0).astype(np.uint16)


def decode_depth(pixels: NDArray[np.uint16], scale: float) -> NDArray[np.float32]:
    """Return metres; NaN for pixels that are 0 or saturated."""
    valid = (pixels > 0) & (pixels < SATURATED)
    return np.where(valid, pixels / scale, np.nan).astype(np.float32)


def encode_classes(semantic: NDArray[np.uint16], label_set: LabelSet) -> NDArray[np.uint16]:
    """Return class pixels in which 0 is unlabelled, unless it is the id of a class."""
    if 0 in label_set.by_id:
        return semantic
    return np.where(semantic == UNLABELLED, 0, semantic).astype(np.uint16)


def decode_classes(pixels: NDArray[np.uint16], label_set: LabelSet | None) -> NDArray[np.uint16]:
    """Return class ids; undo `encode_classes`."""
    if label_set is not None and 0 in label_set.by_id:
        return pixels
    return np.where(pixels == 0, UNLABELLED, pixels).astype(np.uint16)


def encode_instances(instance: NDArray[np.int32], frame: int) -> NDArray[np.uint16]:
    """Return instance pixels; SequenceError names a frame with an id that needs over 16 bits."""
    if instance.size and (instance.min() < 0 or instance.max() > 65535):
        ids = f'instance ids {instance.min()} to {instance.max()}'
        raise SequenceError(f'frame {frame}: {ids} do not fit into 16 bits; write a bag')
    return instance.astype(np.uint16)


def write_image(path: Path, pixels: NDArray[Any]) -> None:
    """Write an image in the format of the file name; SequenceError if it cannot be written."""
    with errors_as(SequenceError, f'{path} cannot be written', OSError):
        Image.fromarray(np.ascontiguousarray(pixels)).save(path, **_SAVING[path.suffix])


def read_color(path: Path) -> NDArray[np.uint8]:
    """Read RGB, shape (height, width, 3)."""
    return np.asarray(read_image(path, SequenceError).convert('RGB'), np.uint8)


def read_16_bit(path: Path) -> NDArray[np.uint16]:
    """Read an image of one channel of up to 16 bits; else SequenceError."""
    pixels = np.asarray(read_image(path, SequenceError))
    if pixels.ndim != 2 or pixels.dtype.kind not in 'ui':
        raise SequenceError(f'{path} must be an image of one channel of 16 bits')
    return pixels.astype(np.uint16)
