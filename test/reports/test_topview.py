import numpy as np
import pytest

from osmabench_ros.reports.pictures.topview import TopGrid, draw_top_view

RED, GREEN, BLUE = (250, 0, 0), (0, 250, 0), (0, 0, 250)


def plane(low, high, z, spacing_m=0.02):
    x, y = (np.arange(a, b, spacing_m) for a, b in zip(low, high, strict=True))
    return np.stack(
        [*(axis.ravel() for axis in np.meshgrid(x, y)), np.full(x.size * y.size, z)], 1
    )


def view(parts, floors=(0.0,), **options):
    points = np.concatenate([points for points, _ in parts])
    colors = np.concatenate([np.tile(np.uint8(color), (len(p), 1)) for p, color in parts])
    grid = TopGrid.around(points, floors)
    return draw_top_view(points, colors, grid, **options), grid


def at(image, grid, x, y, z=0.0):
    column, row = np.floor(grid.find_pixels(np.array([x, y, z]))).astype(int)
    return image[row, column].tolist()


def test_the_highest_point_below_the_cut_is_what_shows():
    floor, ceiling = plane((0, 0), (2, 2), 0), plane((0, 0), (2, 2), 2.5)
    table = plane((0.5, 0.5), (1.5, 1.5), 0.7)
    image, grid = view([(ceiling, BLUE), (table, GREEN), (floor, RED)])
    assert at(image, grid, 1.0, 1.0) == [*GREEN, 255]
    assert at(image, grid, 0.2, 1.8) == [*RED, 255]
    assert not image[..., 2].any()


def test_storeys_lie_side_by_side_and_a_point_is_on_its_own():
    parts = [
        (plane((0, 0), (2, 2), z), color) for z, color in ((0, RED), (2.6, BLUE), (2.8, GREEN))
    ]
    image, grid = view(parts, (0.0, 2.8))
    assert image.shape == (grid.height, 2 * grid.panel, 4)
    assert at(image, grid, 1.0, 1.0) == [*RED, 255]
    assert at(image, grid, 1.0, 1.0, 2.85) == [*GREEN, 255]
    assert at(image, grid, 1.0, 1.0, 2.4) == [*RED, 255], 'below the ceiling'


def test_x_points_right_and_y_points_up():
    corners = [((0, 0), RED), ((3, 0), GREEN), ((0, 3), BLUE)]
    parts = [(plane(low, np.add(low, 0.5), 0), color) for low, color in corners]
    image, grid = view(parts)
    height, width = image.shape[:2]
    assert image[height - 25, 25].tolist() == [*RED, 255]
    assert image[height - 25, width - 25].tolist() == [*GREEN, 255]
    assert image[25, 25].tolist() == [*BLUE, 255]
    assert grid.width == grid.height


def test_what_nobody_saw_is_transparent():
    image, grid = view([(plane((0, 0), (1, 1), 0), RED), (plane((2, 0), (3, 1), 0), RED)])
    assert at(image, grid, 1.5, 0.5) == [0, 0, 0, 0]
    assert at(image, grid, 0.5, 0.5)[3] == at(image, grid, 2.5, 0.5)[3] == 255


def test_a_sparse_table_hides_the_floor_without_holes():
    rng = np.random.default_rng(0)
    floor = plane((0, 0), (2, 2), 0)
    table = np.column_stack([rng.uniform(0.5, 1.5, (400, 2)), np.full(400, 0.7)])
    image, grid = view([(floor, RED), (table, GREEN)], splat_m=0.09)
    column, row = np.floor(grid.find_pixels(np.array([0.6, 1.4, 0.0]))).astype(int)
    size = round(0.8 / grid.cell_m)
    inside = image[row : row + size, column : column + size]
    assert (inside[..., 1] > 0).mean() > 0.99


def test_cells_beside_higher_ones_are_darker():
    floor, box = plane((0, 0), (2, 2), 0), plane((0.8, 0.8), (1.2, 1.2), 0.5)
    image, grid = view([(floor, RED), (box, GREEN)])
    beside, away = at(image, grid, 1.0, 0.7), at(image, grid, 0.2, 0.2)
    assert beside[0] < away[0] == 250


def test_an_empty_cloud_gives_an_empty_image():
    nothing = np.zeros((0, 3))
    grid = TopGrid.around(nothing, (0.0,))
    assert not draw_top_view(nothing, np.zeros((0, 3), np.uint8), grid).any()


def test_large_scenes_get_larger_cells():
    grid = TopGrid.around(np.array([[0, 0, 0], [200, 50, 0]]), (0.0,))
    assert max(grid.width, grid.height) <= 561
    assert grid.cell_m == pytest.approx(200.6 / 560)


def test_points_beside_the_grid_are_left_out():
    grid = TopGrid.around(plane((0, 0), (1, 1), 0), (0.0,))
    far = np.array([[90.0, 90.0, 0.0], [-90.0, 0.0, 0.0]])
    assert not draw_top_view(far, np.full((2, 3), 9, np.uint8), grid).any()
