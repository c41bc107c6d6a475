import numpy as np
import pytest

from osmabench_ros.base.images import decode_srgb, encode_srgb_image
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.nodes import trimmed_box, upright_box, voted_labels, without_light
from osmabench_ros.scenes.apartment.finishes import COLORS
from osmabench_ros.semantics.labels import (
    COLOR_EXAMPLES,
    LabelSet,
    choose_color,
    color_indices,
    convert_to_lab,
)

LABELS = LabelSet.from_names('test', ['cup', 'mug', 'sofa'], ['floor'])
RNG = np.random.default_rng(1)


def box_points(size, pose=None, count=20000):
    points = RNG.uniform(-0.5, 0.5, (count, 3)) * size
    return points if pose is None else pose.transform(points)


def test_the_apartment_names_its_colors_with_these_words():
    rgb = np.array([np.rint(np.array(value) * 255) for value in COLORS.values()], np.uint8)
    assert [list(COLOR_EXAMPLES)[i] for i in color_indices(rgb)] == list(COLORS)


def test_lab_of_known_colors():
    # White, sRGB red and sRGB blue under D65 (CIE 15; values as in Lindbloom's calculator).
    lab = convert_to_lab(np.array([[255, 255, 255], [255, 0, 0], [0, 0, 255]], np.uint8))
    expected = [[100, 0, 0], [53.24, 80.09, 67.20], [32.30, 79.19, -107.86]]
    np.testing.assert_allclose(lab, expected, atol=0.1)


def test_the_most_frequent_color_wins_by_weight():
    indices = color_indices(np.array([[194, 33, 31], [38, 82, 173], [38, 82, 173]], np.uint8))
    assert choose_color(indices, np.array([1, 1, 1])) == 'blue'
    assert choose_color(indices, np.array([5, 1, 1])) == 'red'


@pytest.mark.parametrize('yaw', [0.0, 0.3, 0.7, -0.6, 1.2])
def test_upright_boxes_find_heading_and_size(yaw):
    box = upright_box(box_points((2.0, 0.8, 1.1), Pose.from_yaw(yaw, (3, -2, 0.5))))
    np.testing.assert_allclose(box.pose.translation, (3, -2, 0.5), atol=0.01)
    turned = abs((yaw - box.pose.yaw_rad) % np.pi)
    quarter = min(turned, np.pi - turned) > np.pi / 4
    expected = (0.8, 2.0, 1.1) if quarter else (2.0, 0.8, 1.1)
    np.testing.assert_allclose(box.size, expected, atol=0.04)
    assert -np.pi / 4 < box.pose.yaw_rad <= np.pi / 4


def test_round_things_keep_the_axes_of_the_world():
    angle, radius = RNG.uniform(0, 2 * np.pi, 5000), np.sqrt(RNG.random(5000))
    disc = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(5000)])
    assert upright_box(disc).pose.yaw_rad == 0.0


@pytest.mark.parametrize(
    'points',
    [
        np.array([[1.0, 2.0, 3.0]]),
        np.array([[0.0, 0, 0], [1, 1, 0]]),
        np.linspace([0, 0, 0], [2, 2, 1], 50),
        np.full((5, 3), 0.5, np.float32),
    ],
    ids=['point', 'pair', 'line', 'repeated'],
)
def test_degenerate_points_have_boxes_around_them(points):
    box = upright_box(points)
    local = box.pose.inverse().transform(points)
    assert (np.abs(local) <= box.size / 2 + 0.02).all()


def test_a_few_stray_points_do_not_blow_up_a_box():
    points = np.vstack([box_points((1.0, 1.0, 1.0)), RNG.uniform(-9, 9, (20, 3))])
    np.testing.assert_allclose(trimmed_box(points).size, 1.0, atol=0.03)
    np.testing.assert_allclose(upright_box(points).size, 1.0, atol=0.03)


def test_labels_are_ranked_by_votes():
    votes = np.array([3.0, 0.0, 6.0, 0.1])
    labels = voted_labels(votes, LABELS)
    assert [label.name for label in labels] == ['mug', 'cup']
    assert labels[0].score == pytest.approx(6 / 9.1)
    assert labels[0].class_id == LABELS.id_of('mug')


def test_without_votes_there_is_no_label():
    assert voted_labels(np.zeros(4), LABELS) == ()


def test_dimmed_colors_keep_their_names_beside_white():
    colors = np.array(list(COLOR_EXAMPLES.values()), np.uint8)
    scene = np.vstack([colors, np.full((len(colors), 3), 250, np.uint8)])
    dim = encode_srgb_image(decode_srgb(scene / 255.0) * 0.25)
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
