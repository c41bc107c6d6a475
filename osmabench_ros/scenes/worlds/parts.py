"""What worlds of other simulators have in common: parts, and classes guessed from their names."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import MissingFileError, SceneError, warn
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.assets import crease_mesh
from osmabench_ros.scenes.ground_truth import measure_sizes
from osmabench_ros.scenes.scene import Light, LightKind, Mesh, Scene, SceneObject, make_triple
from osmabench_ros.scenes.solids import plane
from osmabench_ros.semantics.labels import (
    STRUCTURE_NOUNS,
    UNLABELLED,
    LabelSet,
    is_structure,
    normalised_name,
)

LAMP_RULE = 'every point or spot light is a lamp'

# A flat object longer than this is a ground plane and is cut to the other objects.
GROUND_M = 30.0

GROUND_MARGIN_M = 1.0

# Parts nearer to the rest than this are part of the scene, however small it is.
MIN_FAR_M = 10.0


class ColladaUp(str, Enum):
    """How the `up_axis` of a Collada file acts: Gazebo Classic ignores it, new Gazebo does not.

    VERSION takes a world of SDF 1.7, the last that Classic reads, or older for one of Classic.
    """

    VERSION = 'version'
    IGNORED = 'ignored'
    APPLIED = 'applied'


@dataclass(frozen=True)
class WorldOptions:
    """How a Gazebo world is read.

    Parameters
    ----------
    models : sequence of Path
        Folders that models are searched in first.
    classes : mapping
        Class names by shell pattern of model names, see `guess_class`.
    known_classes : sequence of str
        Names that classes guessed from the names of models are matched to by their words.
    collada_up : ColladaUp
        Whether the `up_axis` of Collada files turns them.
    textures : sequence of Path
        Folders below which textures are searched by name that are not near their mesh.
    skip_missing : bool
        Leave out what names files that are not there, instead of raising MissingFileError.
    group_by_parent : bool
        Make one object of the nodes of a mesh file below one parent.
    """

    models: Sequence[Path] = ()
    classes: Mapping[str, str] = field(default_factory=dict)
    known_classes: Sequence[str] = ()
    collada_up: ColladaUp = ColladaUp.VERSION
    textures: Sequence[Path] = ()
    skip_missing: bool = False
    group_by_parent: bool = False


DEFAULT_OPTIONS = WorldOptions()


@dataclass(frozen=True, eq=False)
class Part:
    """An object in the making: meshes in its frame, its pose, and its attributes in the world."""

    name: str
    pose: Pose
    meshes: tuple[Mesh, ...]
    class_name: str = ''
    parent: str = ''


def make_scene(
    parts: Sequence[Part],
    dataset: str,
    path: Path,
    options: WorldOptions,
    *,
    lights: tuple[Light, ...],
    sha256: str,
    missing: Iterable[str] = (),
) -> Scene:
    """Return the scene of a world's visible parts, with its grounds cut; SceneError without any.

    Parts without a class get one that is guessed from their names. `missing` says of each file
    that was not found who names it; MissingFileError lists them unless `skip_missing` is set.
    Parts that are farther from the rest than the rest is large are left out with a warning.
    """
    left_out = tuple(dict.fromkeys(missing))
    if left_out and not options.skip_missing:
        listed = ''.join(f'\n  {text}' for text in left_out)
        problem = f'{path} names {len(left_out)} files or models that do not exist'
        raise MissingFileError(f'{problem}; --skip-missing leaves them out:{listed}')
    if not parts:
        raise SceneError(f'{path} has no visible models; nothing can be rendered')
    parts, far = _drop_far_parts(parts)
    for text in far:
        warn(f'{path}: {text}')
    left_out = (*left_out, *far)
    parts = _with_cut_grounds(parts)
    prefix = find_common_prefix(item.name for item in parts)
    names = [
        normalised_name(item.class_name) or guess_class(item.name, options.classes, prefix)
        for item in parts
    ]
    names = [match_known_class(name, options.known_classes) if name else '' for name in names]
    known = sorted(set(names) - {''})
    labels = LabelSet.from_names(dataset, known, filter(is_structure, known))
    objects = []
    for number, (part, name) in enumerate(zip(parts, names, strict=True), start=1):
        class_id = labels.id_of(name) if name else UNLABELLED
        meshes = tuple(mesh if mesh.has_normals else crease_mesh(mesh) for mesh in part.meshes)
        item = SceneObject(number, part.name, class_id, meshes, part.pose)
        objects.append(replace(item, attributes=measure_sizes(item), parent=part.parent))
    return Scene(
        dataset,
        path.stem,
        labels,
        tuple(objects),
        lights=lights,
        source_sha256=sha256,
        lamp_rule=LAMP_RULE if lights else '',
        left_out=left_out,
    )


def _drop_far_parts(parts: Sequence[Part]) -> tuple[Sequence[Part], list[str]]:
    """Return the parts without those far from the rest, and a sentence about each of these.

    The widest gap along an axis splits the parts in two; if it is wider than the side with more
    parts is large, and than MIN_FAR_M, the other side is far, and the rest is split again. Of
    two sides with about as many parts none is the rest.
    """
    boxes = [_measure_box(part) for part in parts]
    low, high = (np.array([getattr(box, end) for box in boxes]) for end in ('minimum', 'maximum'))
    near = np.ones(len(parts), bool)
    texts = []
    while near.sum() > 1:
        gap_m, others = _find_widest_gap(low, high, np.flatnonzero(near))
        rest = near.copy()
        rest[others] = False
        size_m = float((high[rest].max(axis=0) - low[rest].min(axis=0)).max())
        if gap_m <= max(size_m, MIN_FAR_M) or 2 * len(others) > rest.sum():
            break
        near = rest
        texts += [
            f'"{parts[i].name}" is {gap_m:.3g} m from the rest, which is {size_m:.3g} m large, '
            'and is left out; move it in the world if it belongs there'
            for i in others
        ]
    return [part for part, is_near in zip(parts, near, strict=True) if is_near], texts


def _find_widest_gap(
    low: NDArray[np.float64], high: NDArray[np.float64], rows: NDArray[np.intp]
) -> tuple[float, NDArray[np.intp]]:
    """Return the widest gap between boxes along an axis, and the rows on its emptier side."""
    widest_m, emptier = 0.0, rows[:0]
    for axis in range(3):
        order = rows[np.argsort(low[rows, axis], kind='stable')]
        gaps_m = low[order[1:], axis] - np.maximum.accumulate(high[order[:-1], axis])
        at = int(np.argmax(gaps_m))
        if gaps_m[at] > widest_m:
            sides = order[: at + 1], order[at + 1 :]
            widest_m = float(gaps_m[at])
            emptier = min(sides, key=len)
    return widest_m, emptier


def _with_cut_grounds(models: Sequence[Part]) -> Sequence[Part]:
    """Cut ground planes, often 100 m wide, to the other models."""
    boxes = [_measure_box(model) for model in models]
    ground = [box.size[2] < 0.01 and box.size.max() > GROUND_M for box in boxes]
    rest = [box for box, is_ground in zip(boxes, ground, strict=True) if not is_ground]
    if not rest:
        return models
    whole = AxisAlignedBox.holding(rest)
    low = whole.minimum - GROUND_MARGIN_M
    high = whole.maximum + GROUND_MARGIN_M
    cut = []
    for model, box, is_ground in zip(models, boxes, ground, strict=True):
        a = np.maximum(low, box.minimum)[:2]
        b = np.minimum(high, box.maximum)[:2]
        if is_ground and (b > a).all():
            mesh = replace(plane(b - a), material=model.meshes[0].material)
            pose = Pose(np.eye(3), np.array([*(a + b) / 2, box.maximum[2]]))
            model = Part(model.name, pose, (mesh,))
        cut.append(model)
    return cut


def _measure_box(model: Part) -> AxisAlignedBox:
    points = np.concatenate([mesh.vertices for mesh in model.meshes])
    return AxisAlignedBox.around(model.pose.transform(points))


def find_common_prefix(names: Iterable[str]) -> str:
    """Return what at least three names (behind '::') all start with, up to the last underscore."""
    every = {name.rpartition('::')[2] for name in names}
    if len(every) < 3:
        return ''
    shared = os.path.commonprefix(list(every))  # noqa: RUF071 - of characters
    return shared[: shared.rfind('_') + 1]


def guess_class(model: str, patterns: Mapping[str, str], prefix: str = '') -> str:
    """Return the class of a model by shell `patterns`, else its name without prefix and numbers.

    ``'aws_robomaker_residential_KitchenTable_01_001'`` is by default a ``'kitchen table'``;
    patterns are tried in order, case-insensitive, and an empty class name means no class.
    """
    for pattern, name in patterns.items():
        if fnmatchcase(model.lower(), pattern.lower()):
            return normalised_name(name)
    plain = model.rpartition('::')[2].removeprefix(prefix)
    plain = re.sub(r'^aws_robomaker_[a-z]+_(?=.)', '', plain)
    plain = re.sub(r'([_\-. ]?(?:\d+|LOD\d*)|_clone)+$', '', plain, flags=re.IGNORECASE) or plain
    # "Lamp.Desk" is a desk lamp: words after a dot describe the word before it.
    plain = ' '.join(reversed(plain.split('.')))
    words = re.sub(r'(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])', ' ', plain)
    name = normalised_name(words.replace('-', ' ').replace('.', ' '))
    # Variants of a model are often lettered: ChairA, ChairD.
    name = re.sub(r'(?<=\w\w) [a-z]$', '', name)
    before, _, last = name.rpartition(' ')
    noun = _make_singular(last)
    if noun not in STRUCTURE_NOUNS:
        return name
    # Parts of buildings are often numbered: "floor 01 walls" are the walls of the first floor.
    return noun if re.search(r'\d', before) else f'{before} {noun}'.strip()


def match_known_class(name: str, known: Sequence[str]) -> str:
    """Return the known class that the words of a name end with, else hold, else the name itself.

    Singular and plural are the same, longer known names win: of 'table' and 'coffee table',
    ``'big coffee tables'`` is a 'coffee table'. Where a known name ends with the last word, only
    that decides: with a 'floor lamp', ``'desk lamp'`` is no 'desk'.
    """
    words = [_make_singular(word) for word in name.split(' ')]
    spelt = {
        ' '.join(map(_make_singular, normalised_name(item).split(' '))): item for item in known
    }
    ends = [' '.join(words[start:]) for start in range(len(words))]
    spans = ((start, end) for end in range(len(words) - 1, 0, -1) for start in range(end))
    parts = [' '.join(words[start:end]) for start, end in spans]
    if any(item.endswith(f' {words[-1]}') for item in spelt):
        # A desk lamp is not a desk where there are floor lamps.
        parts = []
    return next((normalised_name(spelt[part]) for part in (*ends, *parts) if part in spelt), name)


def _make_singular(word: str) -> str:
    """Return an English noun without its plural, as far as its letters show."""
    if re.search(r'(ss|us|is)$', word) or len(word) < 4:
        return word
    word = re.sub(r'(?<=[^aeiou])ies$', 'y', word)
    return re.sub(r'(?<=ch)es$|(?<=sh)es$|(?<=[xs])es$|(?<!s)s$', '', word)


def make_light(
    name: str,
    kind: LightKind,
    place: ArrayLike,
    direction: ArrayLike,
    color: ArrayLike,
    strength: float,
    half_angle_rad: float,
) -> Light:
    """Return a light; its colour may be brighter than white; directional ones are not lamps."""
    shine = np.maximum(np.asarray(color, float), 0)
    brightest = float(shine.max())
    return Light(
        name,
        kind,
        make_triple(place),
        make_triple(direction),
        make_triple(shine / brightest if brightest > 0 else np.ones(3)),
        brightest * strength,
        half_angle_rad,
        lamp=kind is not LightKind.DIRECTIONAL,
    )
