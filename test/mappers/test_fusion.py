import numpy as np
import pandas as pd
import pytest

from osmabench_ros.errors import MapError
from osmabench_ros.mappers.fusion import MAX_SEGMENTS, VoxelFusion, voxel_indices

RNG = np.random.default_rng(3)


def random_frames(count=5, size=4000):
    for _ in range(count):
        yield (
            RNG.uniform(-2, 2, (size, 3)),
            RNG.integers(0, 256, (size, 3)).astype(np.uint8),
            RNG.integers(0, 4, size),
        )


def fused(frames, voxel_m=0.1):
    fusion = VoxelFusion(voxel_m)
    for frame in frames:
        fusion.add(*frame)
    return fusion.cells()


def test_cells_are_the_groups_of_voxel_and_segment_that_pandas_makes():
    frames = list(random_frames())
    cells = fused(frames, 0.25)
    points, colors, segments = (np.concatenate(part) for part in zip(*frames, strict=True))
    voxels = np.floor(points / 0.25).astype(int)
    groups = pd.DataFrame(np.hstack([points, colors])).groupby([*voxels.T, segments])
    keys = pd.MultiIndex.from_arrays([*voxel_indices(cells.voxels).T, cells.segments])
    assert len(cells) == groups.ngroups
    np.testing.assert_array_equal(cells.counts, groups.size()[keys])
    expected = groups.mean().loc[keys].to_numpy()
    np.testing.assert_allclose(cells.points, expected[:, :3], atol=0.25 / 4096)
    np.testing.assert_allclose(cells.colors, expected[:, 3:], atol=0.5001)


def test_the_order_of_frames_and_questions_does_not_matter():
    frames = list(random_frames())
    forth, back = VoxelFusion(0.1), fused(reversed(frames))
    for frame in frames:
        forth.add(*frame)
        forth.cells()
    for name in ('voxels', 'segments', 'points', 'colors', 'counts'):
        assert getattr(forth.cells(), name).tobytes() == getattr(back, name).tobytes()


def test_merging_early_changes_nothing(monkeypatch):
    frames = list(random_frames())
    late = fused(frames)
    monkeypatch.setattr('osmabench_ros.mappers.fusion._MERGE_ROWS', 1)
    assert late.points.tobytes() == fused(frames).points.tobytes()


def test_a_plane_stays_exactly_in_its_plane():
    x, y = np.meshgrid(np.linspace(0, 1, 200), np.linspace(0, 1, 200))
    points = np.column_stack([x.ravel(), y.ravel(), np.full(x.size, 0.7531)])
    plane = points, np.zeros((x.size, 3), np.uint8), np.zeros(x.size, np.int64)
    cells = fused([plane], 0.05)
    assert 400 <= len(cells) <= 441
    np.testing.assert_allclose(cells.points[:, 2], 0.7531, atol=0.05 / 4096)


def test_extra_columns_are_averaged():
    fusion = VoxelFusion(1.0, extra_columns=2)
    points = np.full((4, 3), 0.5)
    extras = np.array([[0, 10], [2, 10], [4, -10], [6, -10]])
    fusion.add(points, np.zeros((4, 3), np.uint8), np.zeros(4, np.int64), extras)
    fusion.add(points[:1], np.zeros((1, 3), np.uint8), np.zeros(1, np.int64), np.array([[3, 0]]))
    np.testing.assert_array_equal(fusion.cells().extras, [[3.0, 0.0]])
    assert fusion.cells().frames.tolist() == [2]


def test_shares_and_winners_of_a_voxel():
    points = np.array([[0.5, 0.5, 0.5]] * 4 + [[1.5, 0.5, 0.5]] * 2)
    segments = np.array([2, 1, 1, 1, 7, 3])
    cells = fused([(points, np.zeros((6, 3), np.uint8), segments)], 1.0)
    assert cells.segments.tolist() == [1, 2, 3, 7]
    assert cells.vote_shares().tolist() == [0.75, 0.25, 0.5, 0.5]
    assert cells.segments[cells.winner_rows()].tolist() == [1, 3]  # ties: the lower segment
    abstaining = np.isin(cells.segments, [1, 3])
    assert cells.segments[cells.winner_rows(abstaining)].tolist() == [2, 7]
    assert cells.segments[cells.winner_rows(np.ones(4, bool))].tolist() == [1, 3]


def test_an_empty_grid_has_no_cells():
    cells = fused([(np.empty((0, 3)), np.empty((0, 3), np.uint8), np.empty(0, np.int64))])
    assert len(cells) == 0
    assert cells.winner_rows().size == 0


@pytest.mark.parametrize('point', [(1e5, 0, 0), (0, -1e5, 0), (0, 0, 3000.0)])
def test_a_point_outside_the_grid_is_refused(point):
    with pytest.raises(MapError, match='voxel grid reaches'):
        VoxelFusion(0.1).add(np.array([point]), np.zeros((1, 3), np.uint8), np.zeros(1, int))


def test_too_many_segments_are_refused():
    with pytest.raises(MapError, match=f'segments are from {MAX_SEGMENTS} to'):
        VoxelFusion(0.1).add(
            np.zeros((1, 3)), np.zeros((1, 3), np.uint8), np.array([MAX_SEGMENTS])
        )
