"""A bridge in a separate process that plays a small recorded sequence, and its audience."""

from osmabench_ros.msg import LabelInfo, LightingState, RunInfo, RunState
from rosgraph_msgs.msg import Clock

from osmabench_ros.base import contract as topics
from osmabench_ros.ros.matched_client import LifecycleClient
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.ros.node.frame_receiver import Acknowledger, FrameReceiver
from osmabench_ros.ros.qos import clock_profile, latched_profile
from osmabench_ros.sequences.layout import OSMA
from osmabench_ros.sequences.writer import FolderWriter
from support.ros_processes import call_run, node_process
from support.waiting import Spinner, listen
from support.world.frames import FRAMES, INFO, write_frames

BRIDGE = topics.BRIDGE


def write_sequence(directory, frames=FRAMES):
    """Write the small recorded sequence."""
    write_frames(FolderWriter(directory, OSMA, INFO), frames)
    return directory


def bridge_process(domain, **parameters):
    """Start a bridge; it waits to be configured."""
    return node_process(domain, 'simulator_bridge_node', autostart=False, **parameters)


class Audience(Spinner):
    """Receives frames, clock and state of a bridge; acknowledges frames if it takes part.

    Parameters
    ----------
    context : rclpy context
        In the domain of the bridge.
    acknowledges : callable, optional
        Whether to acknowledge the n-th frame it receives; by default it never does.
    """

    def __init__(self, context, *, lockstep=False, acknowledges=None):
        super().__init__(context)
        self.node = self.make_node('audience')
        self.manager = LifecycleClient(self.node, self.executor, timeout_s=60.0)
        self.frames = []
        self.clocks_ns = []
        self._acknowledges = acknowledges
        # A run ends when one that is not a participant of it could acknowledge.
        self._acks = Acknowledger(self.node, 'audience') if acknowledges is not None else None
        self.restarts = 0
        FrameReceiver(
            self.node,
            self._on_frame,
            lockstep=lockstep,
            ground_truth=True,
            on_restart=self._on_restart,
        )
        self.states, self.infos, self.lights, self.labels = (
            listen(self.node, kind, topic, latched_profile())
            for kind, topic in (
                (RunState, topics.RUN_STATE), (RunInfo, topics.RUN_INFO),
                (LightingState, topics.LIGHTING), (LabelInfo, topics.LABEL_INFO),
            )
        )  # fmt: skip
        self.node.create_subscription(
            Clock,
            topics.CLOCK,
            lambda message: self.clocks_ns.append(stamp_from_message(message.clock)),
            clock_profile(),
        )

    def _on_frame(self, frame):
        self.frames.append(frame)
        if self._acks and self._acknowledges and self._acknowledges(len(self.frames) - 1):
            self._acks.acknowledge(frame.stamp_ns, processing_time_s=0.02)

    def _on_restart(self):
        self.restarts += 1
        self.frames = []

    @property
    def stamps_ns(self):
        """Stamps of the frames so far."""
        return [frame.stamp_ns for frame in self.frames]

    @property
    def state(self):
        """What run_state said last."""
        return self.states[-1] if self.states else RunState(state=255)

    def change(self, *transitions):
        """Take the bridge through transitions."""
        for transition in transitions:
            self.manager.change(BRIDGE, transition, lambda: None)

    def state_in_words(self):
        """Describe the last state of the run."""
        return str(self.state)

    def control(self, name, frames=0):
        """Start, pause, reset or step the run."""
        return call_run(self, self.node, BRIDGE, name, frames)
