"""What the light on the camera costs the appearance mapper: f-mIoU, apartment by apartment.

    python benchmarks/appearance_light.py
    python benchmarks/appearance_light.py --seeds 3 --width 320 --height 240

Every apartment is mapped twice along one path: under baseline light and under a light on the
camera. The strict f-mIoU of both maps is compared pair by pair, with a bootstrap interval over the
apartments. The exit code is 0 if and only if the interval lies below 0.
"""

import argparse
import sys

from learn_prototypes import ApartmentSequence, TrainingSetup
from rich.console import Console
from rich.table import Table

from osmabench_ros.mappers.mapper import make_mapper
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.metrics import segmentation
from osmabench_ros.metrics.nearest_neighbours import nearest
from osmabench_ros.metrics.statistics import PairedDifference, compare_pairs
from osmabench_ros.scenes.visibility import find_visible_points, sample_surface
from osmabench_ros.semantics.cloud import LabelledCloud

CONDITIONS = ('baseline', 'camera')
POINTS_PER_M2 = 400.0
MAX_DISTANCE_M = 0.1
console = Console()


def main() -> int:
    """Map, score and compare."""
    arguments = _arguments()
    setup = TrainingSetup(width=arguments.width, height=arguments.height)
    rows = []
    for seed in range(arguments.seeds):
        rows.append([scores.fmiou for scores in _scores_of(seed, arguments.mapper, setup)])
        values = zip(CONDITIONS, rows[-1], strict=True)
        figures = ', '.join(f'{name} {value:.3f}' for name, value in values)
        console.print(f'apartment {seed}: {figures}')
    baseline, camera = zip(*rows, strict=True)
    compared = compare_pairs(baseline, camera, unit='scenes')
    _print(arguments.mapper, rows, compared)
    return 0 if compared.difference.high < 0 else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seeds', type=int, default=10, help='apartments 0 to N - 1')
    parser.add_argument('--mapper', default='appearance')
    parser.add_argument('--width', type=int, default=640)
    parser.add_argument('--height', type=int, default=480)
    return parser.parse_args()


def _scores_of(
    seed: int, mapper_name: str, setup: TrainingSetup
) -> list[segmentation.SegmentationScores]:
    """Map one apartment under each condition and score it against what the path shows."""
    sequence = ApartmentSequence(seed, setup)
    cloud = sample_surface(sequence.scene, POINTS_PER_M2, seed)
    poses = sequence.trajectory(CONDITIONS[0]).camera_poses
    far_m = 50.0
    visible = find_visible_points(sequence.scene, cloud, poses, setup.intrinsics, far_m)
    truth = cloud.select(visible)
    scores = []
    for condition in CONDITIONS:
        mapper = make_mapper(mapper_name, label_set=sequence.scene.label_set, seed=seed)
        for frame in sequence.frames(condition):
            mapper.integrate(frame)
        scores.append(_strict_scores(mapper.semantic_map(final=True), truth))
    return scores


def _strict_scores(
    semantic_map: SemanticMap, truth: LabelledCloud
) -> segmentation.SegmentationScores:
    dense = semantic_map.dense
    assert dense is not None
    assert dense.labels is not None
    made_up = ~nearest(dense.points, truth.points).within(MAX_DISTANCE_M)
    matrix = segmentation.strict_confusion(
        truth.labels,
        dense.labels,
        nearest(truth.points, dense.points),
        max_distance_m=MAX_DISTANCE_M,
        vocabulary=segmentation.list_scene_vocabulary(truth.labels, ()),
        hallucinated=segmentation.count_hallucinated_points(
            dense.points, dense.labels, made_up, truth.points, cell_m=MAX_DISTANCE_M
        ),
    )
    return segmentation.score_segmentation(matrix, ignored=())


def _print(mapper: str, rows: list[list[float]], compared: PairedDifference) -> None:
    table = Table(title=f'strict f-mIoU of {mapper}, one path an apartment')
    for name in ('apartment', *CONDITIONS, 'difference'):
        table.add_column(name, justify='right')
    for seed, (baseline, camera) in enumerate(rows):
        table.add_row(str(seed), f'{baseline:.3f}', f'{camera:.3f}', f'{camera - baseline:+.3f}')
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    change = compared.difference
    table.add_section()
    table.add_row('mean', *(f'{value:.3f}' for value in means), f'{change.value:+.3f}')
    console.print(table)
    console.print(
        f'camera - baseline: {change.value:+.3f}, 95 % interval [{change.low:+.3f}, '
        f'{change.high:+.3f}] over {change.n} apartments, sign-flip p = {compared.p_value:.4f}'
    )


if __name__ == '__main__':
    sys.exit(main())
