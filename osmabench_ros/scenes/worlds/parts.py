"""What worlds of other simulators have in common: parts, and classes guessed from their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from osmabench_ros.errors import MissingFileError, SceneError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.assets import mesh_of_plain
from osmabench_ros.scenes.ground_truth import sizes_of
from osmabench_ros.scenes.lights import Light, LightKind
from osmabench_ros.scenes.primitives import plane
from osmabench_ros.scenes.scene import Mesh, Scene, SceneObject
from osmabench_ros.semantics.labels import (
    STRUCTURE_NOUNS,
    UNLABELLED,
    LabelSet,
    is_structure,
    normalised_name,
)

LAMP_RULE = 'every point or spot light is a lamp'

GROUND_M = 30.0
"""A flat object longer than this is a ground plane and is cut to what stands on it."""

GROUND_MARGIN_M = 1.0

REFERENCE_M = 2.0
"""Distance at which a light has the brightness that its attenuation gives it.

Gazebo attenuates by constant + linear d + quadratic d^2, a `Light` by d^2 alone.
"""


class ColladaUp(str, Enum):
    """What the `up_axis` of a Collada file does: Gazebo Classic ignores it, new Gazebo does not.

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
        Class names by shell pattern of model names, see `class_name_of`.
    known_classes : sequence of str
        Names that classes guessed from the names of models are matched to by their words.
    collada_up : ColladaUp
        Whether the `up_axis` of Collada files turns them.
    textures : sequence of Path
        Folders below which textures are searched by name that are not near their mesh.
    skip_missing : bool
        Leave out what names files that are not there, instead of raising MissingFileError.
    """

    models: Sequence[Path] = ()
    classes: Mapping[str, str] = field(default_factory=dict)
    known_classes: Sequence[str] = ()
    collada_up: ColladaUp = ColladaUp.VERSION
    textures: Sequence[Path] = ()
    skip_missing: bool = False


DEFAULT_OPTIONS = WorldOptions()


@dataclass(frozen=True, eq=False)
class Part:
    """What becomes an object: meshes in its frame, its pose, and its class if the world says."""

    name: str
    pose: Pose
    meshes: tuple[Mesh, ...]
    class_name: str = ''


def distinct(name: str, taken: set[str]) -> str:
    """Return a name, numbered if it is taken already, and take it."""
    found = name
    while found in taken:
        found = f'{name}_{len(taken)}'
    taken.add(found)
    return found


def left_out(path: Path, missing: Iterable[str], options: WorldOptions) -> tuple[str, ...]:
    """Return what is missing, once each; MissingFileError lists it unless it may be skipped."""
    found = tuple(dict.fromkeys(missing))
    if found and not options.skip_missing:
        listed = ''.join(f'\n  {text}' for text in found)
        raise MissingFileError(
            f'{path} names {len(found)} things that are not there, which --skip-missing leaves '
            f'out:{listed}'
        )
    return found


def scene_of_parts(
    parts: Sequence[Part],
    dataset: str,
    path: Path,
    options: WorldOptions,
    *,
    lights: tuple[Light, ...],
    sha256: str,
    left_out: tuple[str, ...] = (),
) -> Scene:
    """Return the scene of what a world shows; SceneError if that is nothing.

    Grounds are cut, and classes are those that parts say, or guessed from the names of the rest.
    """
    if not parts:
        raise SceneError(f'{path} has no visible models; nothing can be rendered')
    parts = _with_cut_grounds(parts)
    prefix = common_prefix(item.name for item in parts)
    names = [
        normalised_name(item.class_name) or class_name_of(item.name, options.classes, prefix)
        for item in parts
    ]
    names = [known_class(name, options.known_classes) if name else '' for name in names]
    known = sorted(set(names) - {''})
    labels = LabelSet.from_names(dataset, known, filter(is_structure, known))
    objects = tuple(
        _object(i + 1, item, labels.id_of(name) if name else UNLABELLED)
        for i, (item, name) in enumerate(zip(parts, names, strict=True))
    )
    return Scene(
        dataset,
        path.stem,
        labels,
        objects,
        lights=lights,
        source_sha256=sha256,
        lamp_rule=LAMP_RULE if lights else '',
        left_out=left_out,
    )


def scene_of_plain(
    found: Mapping[str, Any], dataset: str, path: Path, options: WorldOptions, sha256: str
) -> Scene:
    """Return the scene of a world that was read in the fence.

    Its `parts` have a name, a pose, plain meshes and, if the world says so, a class; its `lights`
    are arguments of `attenuated_light`, `missing` what `left_out` takes.
    """
    missing = left_out(path, found['missing'], options)
    parts = [
        Part(
            item['name'],
            Pose(item['rotation'], item['place']),
            tuple(map(mesh_of_plain, item['meshes'])),
            item.get('class_name', ''),
        )
        for item in found['parts']
    ]
    lights = tuple(attenuated_light(**item) for item in found['lights'])
    return scene_of_parts(
        parts, dataset, path, options, lights=lights, sha256=sha256, left_out=missing
    )


def _object(instance_id: int, model: Part, class_id: int) -> SceneObject:
    item = SceneObject(instance_id, model.name, class_id, model.meshes, model.pose)
    return replace(item, attributes=sizes_of(item))


def _with_cut_grounds(models: Sequence[Part]) -> Sequence[Part]:
    """Cut ground planes, often 100 m wide, to the other models."""
    boxes = [_box(model) for model in models]
    ground = [box.size[2] < 0.01 and box.size.max() > GROUND_M for box in boxes]
    rest = [box for box, is_ground in zip(boxes, ground, strict=True) if not is_ground]
    if not rest:
        return models
    whole = AxisAlignedBox.holding(rest)
    low, high = whole.minimum - GROUND_MARGIN_M, whole.maximum + GROUND_MARGIN_M
    cut = []
    for model, box, is_ground in zip(models, boxes, ground, strict=True):
        a, b = np.maximum(low, box.minimum)[:2], np.minimum(high, box.maximum)[:2]
        if is_ground and (b > a).all():
            mesh = replace(plane(b - a), material=model.meshes[0].material)
            pose = Pose(np.eye(3), np.array([*(a + b) / 2, box.maximum[2]]))
            model = Part(model.name, pose, (mesh,))
        cut.append(model)
    return cut


def _box(model: Part) -> AxisAlignedBox:
    points = np.concatenate([mesh.vertices for mesh in model.meshes])
    return AxisAlignedBox.around(model.pose.transform(points))


def common_prefix(names: Iterable[str]) -> str:
    """Return what at least three names (behind '::') all start with, up to the last underscore."""
    every = sorted({name.rpartition('::')[2] for name in names})
    if len(every) < 3:
        return ''
    # All of a sorted list share what its ends share.
    pairs = zip(every[0], every[-1], strict=False)
    shared = ''.join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared[: shared.rfind('_') + 1]


def class_name_of(model: str, patterns: Mapping[str, str], prefix: str = '') -> str:
    """Return the class of a model by shell `patterns`, else its name without prefix and numbers.

    ``'aws_robomaker_residential_KitchenTable_01_001'`` is by default a ``'kitchen table'``;
    patterns are tried in order, case-insensitive, and an empty class name means no class.
    """
    for pattern, name in patterns.items():
        if fnmatchcase(model.lower(), pattern.lower()):
            return normalised_name(name)
    plain = model.rpartition('::')[2].removeprefix(prefix)
    plain = re.sub(r'^aws_robomaker_[a-z]+_(?=.)', '', plain)
    plain = re.sub(r'([_\-. ]?\d+|_clone)+$', '', plain) or plain
    words = re.sub(r'(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])', ' ', plain)
    name = normalised_name(words.replace('-', ' ').replace('.', ' '))
    # Variants of a model are often lettered: ChairA, ChairD.
    name = re.sub(r'(?<=\w\w) [a-z]$', '', name)
    before, _, last = name.rpartition(' ')
    noun = _singular(last)
    if noun not in STRUCTURE_NOUNS:
        return name
    # Parts of buildings are often numbered: "floor 01 walls" are the walls of the first floor.
    return noun if re.search(r'\d', before) else f'{before} {noun}'.strip()


def known_class(name: str, known: Sequence[str]) -> str:
    """Return the known class that the words of a name end with, else hold, else the name itself.

    Singular and plural are the same, longer known names win: of 'table' and 'coffee table',
    ``'big coffee tables'`` is a 'coffee table'.
    """
    words = [_singular(word) for word in name.split(' ')]
    spelt = {' '.join(map(_singular, normalised_name(item).split(' '))): item for item in known}
    ends = [' '.join(words[start:]) for start in range(len(words))]
    parts = [
        ' '.join(words[start:end]) for end in range(len(words) - 1, 0, -1) for start in range(end)
    ]
    return next((normalised_name(spelt[part]) for part in (*ends, *parts) if part in spelt), name)


def _singular(word: str) -> str:
    """Return an English noun without its plural, as far as its letters show."""
    if re.search(r'(ss|us|is)$', word) or len(word) < 4:
        return word
    word = re.sub(r'(?<=[^aeiou])ies$', 'y', word)
    return re.sub(r'(?<=ch)es$|(?<=sh)es$|(?<=[xs])es$|(?<!s)s$', '', word)


def attenuated_light(
    name: str,
    kind: str,
    place: ArrayLike,
    direction: ArrayLike,
    diffuse: ArrayLike,
    half_angle_rad: float,
    attenuation: Sequence[float],
    strength: float = 1.0,
) -> Light:
    """Return a light of a renderer that attenuates by three factors; directional ones are not.

    `kind` is the value of a `LightKind`.
    """
    shine = np.maximum(np.asarray(diffuse, float), 0)
    brightest = float(shine.max())
    red, green, blue = (shine / brightest if brightest > 0 else np.ones(3)).tolist()
    intensity = brightest * strength
    directional = kind == LightKind.DIRECTIONAL
    if not directional:
        constant, linear, quadratic = attenuation
        below = constant + linear * REFERENCE_M + quadratic * REFERENCE_M**2
        intensity *= REFERENCE_M**2 / max(below, 1e-3)
    x, y, z = (float(value) for value in np.asarray(place))
    dx, dy, dz = (float(value) for value in np.asarray(direction))
    return Light(
        name,
        LightKind(kind),
        (x, y, z),
        (dx, dy, dz),
        (red, green, blue),
        intensity,
        half_angle_rad,
        lamp=not directional,
    )


_MOST_FILES = 10_000


def bytes_beside(path: Path) -> int:
    """Return the size of the files below the folder of a world, which it may be made of."""
    return sum(
        item.stat().st_size
        for item in islice(path.parent.rglob('*'), _MOST_FILES)
        if item.is_file()
    )
