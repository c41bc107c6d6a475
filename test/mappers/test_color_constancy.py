import numpy as np

from osmabench_ros.base.color import decoded, encoded_image
from osmabench_ros.mappers.nodes import without_light
from osmabench_ros.semantics.labels import COLOR_EXAMPLES, color_indices


def test_encoding_is_undone_exactly():
    every = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    np.testing.assert_array_equal(encoded_image(decoded(every / 255.0)), every)
    # Middle gray of 18 % reflectance is 118 in sRGB (IEC 61966-2-1).
    assert encoded_image(np.array([0.18])).tolist() == [118]


def test_dimmed_colors_keep_their_names_beside_white():
    colors = np.array(list(COLOR_EXAMPLES.values()), np.uint8)
    scene = np.vstack([colors, np.full((len(colors), 3), 250, np.uint8)])
    dim = encoded_image(decoded(scene / 255.0) * 0.25)
    points = np.random.default_rng(0).uniform(0, 1, (len(scene), 3))
    named = color_indices(without_light(points, dim))[: len(colors)]
    assert (named == np.arange(len(colors))).mean() > 0.8
    assert (color_indices(dim)[: len(colors)] == np.arange(len(colors))).mean() < 0.4


def test_places_are_judged_apart_and_nothing_gets_darker():
    colors = np.array([[255, 255, 255], [128, 128, 128], [60, 60, 60]], np.uint8)
    points = np.array([[0.5, 0.5, 0], [5.5, 0.5, 0], [0.6, 0.5, 2]])
    result = without_light(points, colors)
    assert (result >= colors).all()
    assert result[1, 0] > 200
    assert without_light(points[:0], colors[:0]).shape == (0, 3)
