"""Learn the prototypes of the appearance mapper on apartments that no run uses.

    python benchmarks/learn_prototypes.py prototypes.json
    python benchmarks/learn_prototypes.py prototypes.json --apartments 2 --first-seed 1000

The result is for the mapper's option "prototypes"; config/appearance_prototypes.json was made so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from osmabench_ros.base.files import atomic_write, check_file
from osmabench_ros.base.progress import shown_progress
from osmabench_ros.cli.main import main
from osmabench_ros.cli.options import Overwrite
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.mappers import appearance_descriptors
from osmabench_ros.mappers.appearance import FORMAT, VOXEL_M, Prototypes, Survey
from osmabench_ros.mappers.fusion import VoxelFusion
from osmabench_ros.mappers.oracle import require_ground_truth
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.simulation import robot_path
from osmabench_ros.simulation.conditions import load_condition
from osmabench_ros.simulation.frame_source import SimulatedFrames
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.walkable_grid import WalkableGrid

# Seeds from here on are for learning; runs use lower ones.
FIRST_SEED = 1000

CONDITION = 'baseline'

# Patches that mix classes more than this teach nothing.
_MIN_PURITY = 0.6

_ROUNDS = 25
# Smallest within-prototype spread of a feature, as a share of its spread over all patches.
_SCALE_FLOOR = 0.05

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def _write_learnt(
    output: Annotated[Path, typer.Argument(help='JSON file to write.')],
    apartments: Annotated[
        int, typer.Option(min=1, help='How many apartments to learn from.')
    ] = 24,
    first_seed: Annotated[
        int, typer.Option(min=FIRST_SEED, help='Seed of the first.')
    ] = FIRST_SEED,
    per_class: Annotated[int, typer.Option(min=1, help='Most prototypes of a class.')] = 8,
    overwrite: Overwrite = False,
) -> None:
    """Learn the prototypes of the appearance mapper on apartments that no run uses."""
    check_file(output, overwrite=overwrite)
    seeds = range(first_seed, first_seed + apartments)
    with shown_progress() as progress:
        learnt = learn_from_apartments(seeds, per_class=per_class, progress=progress)
    write_prototypes(learnt, output, overwrite=overwrite)
    typer.echo(f'{output}: {len(learnt.names)} prototypes of {len(set(learnt.names))} classes')


def learn_from_apartments(
    seeds: Sequence[int],
    *,
    per_class: int = 8,
    setup: TrainingSetup | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Prototypes:
    """Learn prototypes, `per_class` or fewer, from procedural apartments under baseline light.

    The setup is the demo's by default; `progress` is called with a text and the fraction done.
    Raises ConfigError if there are no seeds, or one is below FIRST_SEED: those are for runs.
    """
    if not seeds or min(seeds) < FIRST_SEED:
        raise ConfigError(
            f'prototypes are learnt on apartments with seeds from {FIRST_SEED} on, lower ones are '
            f'for runs; got {list(seeds) or "none"}'
        )
    setup = setup or TrainingSetup()
    provenance = {
        'scene': 'apartment',
        'condition': CONDITION,
        'seeds': list(seeds),
        'frames_per_seed': setup.max_frames,
    }
    samples = _samples(seeds, setup, progress or (lambda _text, _fraction: None))
    return learn_prototypes(samples, per_class=per_class, seed=0, provenance=provenance)


def _samples(
    seeds: Sequence[int], setup: TrainingSetup, progress: Callable[[str, float], None]
) -> Iterator[TrainingSample]:
    for done, seed in enumerate(seeds):
        progress(f'apartment {seed}', done / len(seeds))
        sequence = ApartmentSequence(seed, setup)
        label_set = sequence.scene.label_set
        yield training_sample(sequence.frames(CONDITION), label_set)
    progress('clustering', 1.0)


@dataclass(frozen=True)
class TrainingSetup:
    """What is rendered, 90 degrees from left to right; the defaults are those of the demo.

    The camera is `mounting_height_m` above the floor; the path is cut where a robot of normal
    speed is after `max_frames`.
    """

    width: int = 640
    height: int = 480
    mounting_height_m: float = 1.5
    robot_radius_m: float = 0.2
    robot_height_m: float = 1.6
    goals: int = 8
    frame_rate_hz: float = 2.5
    max_frames: int = 60

    @property
    def intrinsics(self) -> Intrinsics:
        """Camera of all frames."""
        return Intrinsics.from_hfov(self.width, self.height, np.pi / 2)


class ApartmentSequence:
    """One apartment and one path, both of one seed, under as many conditions as wanted."""

    def __init__(self, seed: int, setup: TrainingSetup) -> None:
        self.setup = setup
        self.scene: Scene = load_scene('apartment', seed=seed)
        navigation = WalkableGrid.of_scene(
            self.scene, radius_m=setup.robot_radius_m, height_m=setup.robot_height_m
        )
        path = robot_path.plan_path(navigation, goals=setup.goals, seed=seed)
        longest_s = (setup.max_frames - 1) / setup.frame_rate_hz
        self._path: robot_path.RobotPath = path.crop(longest_s, robot_path.Motion())

    def trajectory(self, condition: str) -> robot_path.Trajectory:
        """Return the camera poses under a condition, which sets the speed."""
        return robot_path.sample_trajectory(
            self._path,
            load_condition(condition).make_motion(self.setup.frame_rate_hz),
            self.setup.frame_rate_hz,
            robot_path.CameraMount(self.setup.mounting_height_m),
        )

    def frames(self, condition: str) -> Iterator[Frame]:
        """Render the frames under a condition one by one."""
        simulator = OpenGLSimulator(self.scene, self.setup.intrinsics)
        light, trajectory = load_condition(condition), self.trajectory(condition)
        source = SimulatedFrames(self.scene, simulator, light, trajectory)
        try:
            for index in range(len(source)):
                yield source.frame(index).frame
        finally:
            source.close()


@dataclass(frozen=True, eq=False)
class TrainingSample:
    """Patches of one sequence: true classes, descriptors (R, F) and voxel counts (R,)."""

    names: tuple[str, ...]
    descriptors: NDArray[np.float64]
    weights: NDArray[np.float64]


def training_sample(frames: Iterable[Frame], label_set: LabelSet) -> TrainingSample:
    """Return the patches that the appearance mapper would form, with their true classes.

    Patches that mix classes are left out. Raises ConfigError if a frame has no ground truth.
    """
    survey = Survey()
    votes = VoxelFusion(VOXEL_M)
    for frame in frames:
        semantic, _ = require_ground_truth(frame, 'appearance (learning)')
        samples = survey.add(frame)
        truth = semantic.reshape(-1)[samples.rows].astype(np.int64)
        number = np.searchsorted(label_set.ids, np.where(truth == UNLABELLED, -1, truth)) + 1
        number[truth == UNLABELLED] = 0
        votes.add(samples.points, samples.colors, number)
    voxels, _ = survey.voxels()
    pairs = appearance_descriptors.neighbour_pairs(voxels.keys)
    regions = appearance_descriptors.grow_regions(voxels, pairs)
    patches = appearance_descriptors.cut_patches(voxels.points, regions)
    descriptors = appearance_descriptors.describe_patches(voxels, regions, patches, VOXEL_M)
    cells = votes.cells()
    table = np.zeros((len(descriptors), len(label_set.classes) + 1))
    np.add.at(table, (patches[np.searchsorted(voxels.keys, cells.voxels)], cells.segments), 1.0)
    best = table.argmax(axis=1)
    pure = (best > 0) & (table.max(axis=1) >= _MIN_PURITY * table.sum(axis=1))
    names = tuple(label_set.classes[i - 1].name for i in best[pure])
    weights = np.bincount(patches, minlength=len(descriptors))[pure].astype(np.float64)
    return TrainingSample(names, descriptors[pure], weights)


def learn_prototypes(
    samples: Iterable[TrainingSample], *, per_class: int, seed: int, provenance: Mapping[str, Any]
) -> Prototypes:
    """Cluster the patches of each class; a cluster's mean is a prototype, `per_class` or fewer.

    `provenance` is kept in the file. Raises ConfigError if there are no patches.
    """
    taken = list(samples)
    names = np.array([name for sample in taken for name in sample.names])
    if not len(names):
        raise ConfigError('the frames to learn from show nothing that has a class')
    descriptors = np.concatenate([sample.descriptors for sample in taken])
    weights = np.concatenate([sample.weights for sample in taken])
    spread = np.maximum(descriptors.std(axis=0), 1e-3)
    centers, shares, owners, residual = [], [], [], np.zeros(len(appearance_descriptors.FEATURES))
    for name in sorted(set(names.tolist())):
        own = names == name
        rng = np.random.default_rng(seed)
        found, member = _cluster(descriptors[own] / spread, weights[own], per_class, rng)
        mass = np.bincount(member, weights=weights[own], minlength=len(found))
        residual += weights[own] @ (descriptors[own] / spread - found[member]) ** 2
        centers.append(found[mass > 0] * spread)
        shares.append(mass[mass > 0])
        owners += [name] * int((mass > 0).sum())
    scale = spread * np.maximum(np.sqrt(residual / weights.sum()), _SCALE_FLOOR)
    mass = np.concatenate(shares)
    places = np.concatenate(centers) / scale
    return Prototypes(tuple(owners), places, scale, mass / mass.sum(), provenance)


def _cluster(
    items: NDArray[np.float64], weights: NDArray[np.float64], most: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return centres and the centre of each item: weighted k-means, k-means++ seeding."""
    centers = items[[int(rng.choice(len(items), p=weights / weights.sum()))]]
    while len(centers) < min(most, len(items)):
        distance = _squared(items, centers).min(axis=1) * weights
        if distance.sum() <= 0:
            break
        pick = int(rng.choice(len(items), p=distance / distance.sum()))
        centers = np.vstack([centers, items[pick]])
    for _ in range(_ROUNDS):
        member = _squared(items, centers).argmin(axis=1)
        mass = np.bincount(member, weights=weights, minlength=len(centers))
        sums = np.zeros_like(centers)
        np.add.at(sums, member, items * weights[:, None])
        centers = np.where(mass[:, None] > 0, sums / np.maximum(mass, 1e-12)[:, None], centers)
    return centers, np.asarray(_squared(items, centers).argmin(axis=1))


def _squared(items: NDArray[np.float64], centers: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(((items[:, None] - centers) ** 2).sum(axis=2))


def write_prototypes(prototypes: Prototypes, path: Path, *, overwrite: bool = False) -> None:
    """Write prototypes as JSON, one per line, rounded to three digits; a whole file or none."""
    data = {
        'format': FORMAT,
        'features': list(appearance_descriptors.FEATURES),
        'provenance': dict(prototypes.provenance),
        'scale': _rounded(prototypes.scale),
    }
    lines = ',\n'.join(
        json.dumps({'class': name, 'share': _rounded([share])[0], 'center': _rounded(center)})
        for name, share, center in zip(
            prototypes.names, prototypes.shares, prototypes.centers, strict=True
        )
    )
    head = json.dumps(data, sort_keys=True)[:-1]
    with atomic_write(path, overwrite=overwrite) as draft:
        draft.write_text(f'{head}, "prototypes": [\n{lines}\n]}}\n', encoding='utf-8')


def _rounded(values: Any) -> list[float]:
    return [float(f'{value:.3g}') for value in values]


if __name__ == '__main__':
    main(app)
