"""The pictures that a report shows, whenever run_info comes."""

import numpy as np
import pytest
from osmabench_ros.msg import RunInfo

from osmabench_ros.nodes.map_recorder_node import MAX_WAITING, SAMPLES, FrameSampler
from osmabench_ros.ros.messages.images import image_to_message
from osmabench_ros.ros.messages.poses import stamp_to_message

SECOND_NS = 10**9


def take(sampler, *numbers):
    for number in numbers:
        stamp = stamp_to_message((number + 1) * SECOND_NS)
        sampler.take(image_to_message(np.zeros((4, 4, 3), np.uint8), 'rgb8', stamp, 'camera'))


def run_info():
    info = RunInfo(frame_rate=1.0, frame_count=SAMPLES * MAX_WAITING)
    info.header.stamp = stamp_to_message(SECOND_NS)
    return info


@pytest.mark.parametrize('late', [False, True])
def test_every_so_many_frames_are_kept_even_if_run_info_is_late(late, tmp_path):
    sampler = FrameSampler(tmp_path / 'frames')
    first = range(MAX_WAITING // 2)
    if late:
        take(sampler, *first)
    sampler.start(run_info())
    if not late:
        take(sampler, *first)
    take(sampler, *range(len(first), SAMPLES * MAX_WAITING))
    kept = sorted(int(path.stem) for path in (tmp_path / 'frames').glob('*.png'))
    assert kept == [number * MAX_WAITING for number in range(SAMPLES)]


def test_without_run_info_memory_is_bounded(tmp_path):
    sampler = FrameSampler(tmp_path / 'frames')
    take(sampler, *range(3 * MAX_WAITING))
    assert len(sampler.waiting) == MAX_WAITING
    assert not (tmp_path / 'frames').exists()
