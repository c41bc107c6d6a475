import numpy as np
import pytest
from support.benchmark_scripts import benchmark_script

learning = benchmark_script('learn_prototypes')


@pytest.mark.full
def test_discrete_actions_are_the_same_steps_at_any_frame_rate():
    for rate_hz in (1.0, 2.5):
        setup = learning.TrainingSetup(goals=1, frame_rate_hz=rate_hz, max_frames=20)
        trajectory = learning.ApartmentSequence(3, setup).trajectory('compat_baseline')
        at = np.array([pose.translation for pose in trajectory.camera_poses])
        steps = np.linalg.norm(np.diff(at, axis=0), axis=1)
        # Two frames per action of 0.06 m.
        assert steps.max() <= 0.03 + 1e-6
        assert (steps > 0.02).any()
