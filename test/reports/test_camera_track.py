import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from support.world.frames import FRAMES, INFO, write_frames

from osmabench_ros.reports import rerun_recording
from osmabench_ros.reports.rerun_recording import encode_frame, read_track
from osmabench_ros.sequences.writer import BagWriter


def test_without_a_bag_there_are_all_poses_and_the_kept_pictures(matrix):
    frames = list(read_track(matrix.plans[0]))
    assert [frame.index for frame in frames] == list(range(len(frames)))
    assert [frame.index for frame in frames if frame.picture] == [0, 3, 6]
    assert frames[3].time_s == pytest.approx(3 / matrix.plans[0].config.trajectory.frame_rate_hz)


def recorded(matrix, tmp_path):
    plan = replace(matrix.plans[0], root=tmp_path)
    write_frames(BagWriter(plan.directory / 'bag', INFO))
    return plan


def test_a_long_bag_is_thinned_to_its_end(matrix, tmp_path, monkeypatch):
    monkeypatch.setattr(rerun_recording, 'MOST_FRAMES', 2)
    found = list(read_track(recorded(matrix, tmp_path)))
    every = -(-len(FRAMES) // 2)
    assert every > 1
    assert [frame.index for frame in found] == list(range(0, len(FRAMES), every))


def test_a_bag_gives_every_image_and_pose(matrix, tmp_path):
    plan = recorded(matrix, tmp_path)
    found = list(read_track(plan))
    assert len(found) == len(FRAMES)
    for frame, original in zip(found, FRAMES, strict=True):
        np.testing.assert_allclose(frame.pose.matrix, original.camera_pose.matrix, atol=1e-9)
        assert frame.time_s == pytest.approx((original.stamp_ns - FRAMES[0].stamp_ns) / 1e9)
        assert Image.open(io.BytesIO(frame.picture)).size == original.color.shape[1::-1]


def test_depth_becomes_millimetres_and_zero_where_unknown():
    depth_m = FRAMES[0].depth_m.copy()
    depth_m[0, :4] = [1.2344, np.nan, np.inf, 70.0]
    shown = np.asarray(
        Image.open(io.BytesIO(encode_frame(replace(FRAMES[0], depth_m=depth_m), 0.0).depth))
    )
    assert shown[0, :4].tolist() == [1234, 0, 0, 0]
