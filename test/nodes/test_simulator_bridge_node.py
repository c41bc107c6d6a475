"""The bridge over DDS: its topics, its latched information, its pause."""

import pytest
from lifecycle_msgs.msg import Transition
from osmabench_ros.msg import RunState
from support.bridge_process import Audience, bridge_process

pytestmark = [pytest.mark.gl, pytest.mark.slow]


@pytest.fixture
def bridge(ros_domain):
    size = {'image_width': 64, 'image_height': 48}
    with bridge_process(
        ros_domain, frame_rate_hz=4.0, pacing='realtime', goals=1, seed=3, **size
    ) as running:
        yield running


def test_frames_are_complete_stamped_alike_and_stop_while_inactive(bridge, ros_context):
    audience = Audience(ros_context)
    audience.manager.bring_up(['simulator_bridge'], lambda: None)
    # Frames may come before the publisher of the clock is discovered.
    clocks_ns = audience.clocks_ns
    audience.spin_until(
        lambda: clocks_ns and sum(s >= clocks_ns[0] for s in audience.stamps_ns) > 2
    )
    stamps = [stamp for stamp in audience.stamps_ns if stamp >= clocks_ns[0]]
    assert stamps == sorted(set(stamps))
    audience.spin_until(lambda: set(stamps) <= set(clocks_ns))
    assert {(stamp - stamps[0]) % 250_000_000 for stamp in stamps} == {0}
    frame = audience.frames[0]
    assert frame.semantic.shape == frame.instance.shape == (48, 64)

    audience.change(Transition.TRANSITION_DEACTIVATE)
    audience.spin_until(lambda: audience.state.state == RunState.STATE_PAUSED)
    heard = len(audience.frames)
    audience.spin_for(1.5)
    assert len(audience.frames) <= heard + 1

    audience.change(Transition.TRANSITION_ACTIVATE)
    audience.spin_until(lambda: len(audience.frames) >= heard + 3)

    late = Audience(ros_context)
    late.spin_until(lambda: late.states and late.infos and late.labels)
    assert late.infos[0].run_id == 'unnamed'
    assert late.labels[0].classes
