import numpy as np

from osmabench_ros.mappers.rehearsal import ApartmentSequence, Rehearsal


def test_discrete_actions_are_the_same_steps_at_any_frame_rate() -> None:
    for rate_hz in (1.0, 2.5):
        rehearsal = Rehearsal(goals=1, frame_rate_hz=rate_hz, max_frames=20)
        trajectory = ApartmentSequence(3, rehearsal).trajectory('compat_baseline')
        at = np.array([pose.translation for pose in trajectory.camera_poses])
        steps = np.linalg.norm(np.diff(at, axis=0), axis=1)
        # Two frames an action of 0.06 m.
        assert steps.max() <= 0.03 + 1e-6
        assert (steps > 0.02).any()
