import numpy as np
import pytest

from osmabench_ros.mappers import appearance_descriptors
from osmabench_ros.mappers.fusion import VoxelFusion, voxel_indices

VOXEL_M = 0.1


def plane(x_m, y_m, lab, normal=(0, 0, 1), z=0.0):
    """Return points of a plane with one colour and normal."""
    x, y = np.meshgrid(np.arange(0, x_m, 0.05) + 0.01, np.arange(0, y_m, 0.05) + 0.01)
    points = np.column_stack([x.ravel(), y.ravel(), np.full(x.size, z)])
    return points, np.tile(lab, (len(points), 1)), np.tile(normal, (len(points), 1))


def voxels_of(*parts):
    points, lab, normals = (np.concatenate(column) for column in zip(*parts, strict=True))
    fusion = VoxelFusion(VOXEL_M, extra_columns=6)
    extras = np.rint(np.hstack([lab, normals]) * 1000).astype(np.int64)
    fusion.add(points, np.zeros((len(points), 3), np.uint8), np.zeros(len(points), int), extras)
    cells = fusion.cells()
    return appearance_descriptors.Voxels(
        cells.voxels,
        cells.points,
        cells.extras[:, :3] / 1000,
        np.zeros(len(cells)),
        cells.extras[:, 3:] / 1000,
    )


def grown(voxels):
    return appearance_descriptors.grow_regions(
        voxels, appearance_descriptors.neighbour_pairs(voxels.keys)
    )


def test_neighbour_pairs_equal_a_brute_force_search():
    rng = np.random.default_rng(0)
    fusion = VoxelFusion(1.0)
    points = rng.uniform(-4, 4, (150, 3))
    fusion.add(points, np.zeros((150, 3), np.uint8), np.zeros(150, int))
    keys = fusion.cells().voxels
    index = voxel_indices(keys)
    distance = np.abs(index[:, None] - index).max(axis=2)
    expected = {tuple(pair) for pair in np.argwhere(np.triu(distance == 1))}
    pairs = {tuple(sorted(pair)) for pair in appearance_descriptors.neighbour_pairs(keys).tolist()}
    assert pairs == expected


def test_components_are_numbered_by_their_first_item():
    pairs = np.array([[4, 1], [5, 3]])
    assert appearance_descriptors.components(6, pairs).tolist() == [0, 1, 2, 3, 1, 3]
    assert appearance_descriptors.components(0, np.empty((0, 2), np.int64)).tolist() == []


def test_regions_end_where_color_or_orientation_change():
    red, blue = (50, 60, 40), (40, 10, -50)
    floor, carpet = plane(2, 1, red), plane(2, 1, blue)
    carpet = (carpet[0] + [0, 1, 0], *carpet[1:])
    wall = plane(2, 1, red, normal=(0, 1, 0))
    wall = (wall[0][:, [0, 2, 1]] + [0, -0.1, 0.1], *wall[1:])
    voxels = voxels_of(floor, carpet, wall)
    regions = grown(voxels)
    assert regions.max() == 2
    upright = np.abs(voxels.normals[:, 1]) > 0.9
    bluish = voxels.lab[:, 2] < 0
    assert [len(set(regions[mask])) for mask in (upright, bluish, ~upright & ~bluish)] == [1, 1, 1]


def test_specks_join_the_region_around_them():
    voxels = voxels_of(plane(2, 2, (50, 0, 0)))
    voxels.lab[37] = (90, 50, 0)
    regions = grown(voxels)
    assert (regions == 0).all()


def test_patches_cut_regions_and_keep_them_apart():
    voxels = voxels_of(plane(2, 1, (50, 0, 0)))
    regions = (voxels.points[:, 1] > 0.5).astype(np.int64)
    patches = appearance_descriptors.cut_patches(voxels.points, regions)
    assert patches.max() == 3
    for patch in range(4):
        own = patches == patch
        assert len(set(regions[own])) == 1
        assert np.ptp(voxels.points[own, 0]) < 1.0


def test_descriptors_say_what_was_put_in():
    table = plane(1.5, 0.8, (50, 10, -20), z=0.75)
    floor = plane(4, 4, (30, 0, 0))
    voxels = voxels_of(floor, table)
    regions = (voxels.points[:, 2] > 0.5).astype(np.int64)
    found = appearance_descriptors.describe_patches(voxels, regions, regions, VOXEL_M)
    row = dict(zip(appearance_descriptors.FEATURES, found[1], strict=True))
    assert row['lightness'] == pytest.approx(50)
    assert row['yellow_blue'] == pytest.approx(-20)
    assert row['upward'] == pytest.approx(1.0)
    assert row['downward'] == pytest.approx(0.0)
    assert row['lowest'] == pytest.approx(0.75, abs=1e-3)
    assert np.exp(row['log_area']) == pytest.approx(1.2, rel=0.1)
    # The standard deviation of a uniform distribution is its length / sqrt(12).
    assert np.exp(row['log_length']) == pytest.approx(1.5 / np.sqrt(12) + 0.05, rel=0.05)
    assert np.exp(row['log_width']) == pytest.approx(0.8 / np.sqrt(12) + 0.05, rel=0.05)
