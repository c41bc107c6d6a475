import colorsys

import numpy as np

from osmabench_ros.reports.palette import (
    PointOutcome,
    assign_class_colors,
    color_labels,
    format_hex_color,
)
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

THINGS = [f'thing {letter}' for letter in 'abcdefghijklmnopqrstuvwxyzäöü']
LABELS = LabelSet.from_names('many', THINGS, structure=['floor', 'wall', 'ceiling'])


def test_every_class_has_a_colour_of_its_own():
    colors = assign_class_colors(LABELS)
    assert set(colors) == {UNLABELLED, *LABELS.ids.tolist()}
    assert len(set(colors.values())) == len(colors)


def test_structure_is_paler_than_things():
    def saturation(name):
        return colorsys.rgb_to_hsv(
            *(v / 255 for v in assign_class_colors(LABELS)[LABELS.id_of(name)])
        )[1]

    assert max(map(saturation, ['floor', 'wall', 'ceiling'])) < min(map(saturation, THINGS))


def test_ids_without_a_colour_look_unlabelled():
    colors = assign_class_colors(LABELS)
    found = color_labels(np.array([1, UNLABELLED, -1, 60000]), colors)
    assert found[0].tolist() == list(colors[1])
    assert (found[1:] == colors[UNLABELLED]).all()


def test_outcomes_differ_in_brightness_too():
    light = sorted(np.dot(item.color, (0.2126, 0.7152, 0.0722)) for item in PointOutcome)
    assert min(np.diff(light)) > 8
    assert format_hex_color((0, 114, 178)) == '#0072b2'
