from dataclasses import replace

import numpy as np
from support.world import box_room

from osmabench_ros.sequences.fused_cloud import VisibleColors


def test_an_object_has_the_colour_of_the_part_that_is_seen():
    """A white sofa with a black front, of which only the front shows."""
    sequence = []
    for frame in box_room.frames(count=4):
        color = frame.color.copy()
        color[frame.instance == 8] = (23, 23, 26)
        color[(frame.instance == 8) & (np.arange(160) % 16 == 0)] = (237, 237, 232)
        sequence.append(replace(frame, color=color))
    colors = VisibleColors()
    assert list(colors.watching(sequence)) == sequence
    names = colors.names()
    assert names[8] == 'black'
    assert names[6] == 'brown'
    assert 0 not in names


def test_frames_without_instances_show_no_colours_of_objects():
    colors = VisibleColors()
    list(colors.watching(replace(frame, instance=None) for frame in box_room.frames(count=1)))
    assert colors.names() == {}
