"""A third-party mapping method as a separate node that misbehaves on demand."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import rclpy
from osmabench_ros.msg import RecordedMap, RunState
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import Image

from osmabench_ros.base import contract as topics
from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.ros.messages.map_messages import MapPublisher
from osmabench_ros.ros.node.frame_receiver import Acknowledger, FrameReceiver
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.semantics.labels import LabelSet

MISCHIEF = sys.argv[1]
# Names of processes, of which Linux keeps 15 letters.
NODES = ('map_recorder', 'evaluator', 'simulator_bridg')
MISCHIEF_FRAME = 2
SLOW_S = 0.1
ORDER = os.environ.get('TEST_ORDER', '') if MISCHIEF == 'on_order' else ''
INTRUDER = Path(__file__).with_name('intruder.py')
HUGE = 33 * 2**20


class ForeignMapper(Node):
    def __init__(self):
        super().__init__('mapper')
        self.acks = Acknowledger(self, 'mapper')
        self.maps = MapPublisher(self, 'mapper')
        self.points = []
        self.finished = False
        self.receiver = FrameReceiver(
            self,
            self.on_frame,
            lockstep=MISCHIEF != 'slow',
            ground_truth=False,
            on_repeat=self.acks.acknowledge,
        )
        self.create_subscription(RunState, topics.RUN_STATE, self.on_state, latched_profile())
        if MISCHIEF == 'wrong_qos':
            latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            self.create_subscription(Image, topics.DEPTH, lambda _message: None, latched)

        if MISCHIEF == 'stop_clock':
            self.set_parameters([Parameter('use_sim_time', value=True)])
        if ORDER == 'kill_evaluator':
            # It begins to work on the map at this moment.
            self.create_subscription(
                RecordedMap, topics.RECORDED_MAP,
                lambda _message: send('evaluator', signal.SIGKILL), latched_profile(),
            )  # fmt: skip
        if MISCHIEF in ('intruder', 'double'):
            # Starting a process takes longer than the run waits for an acknowledgement.
            self.intruder = intruder('mapper' if MISCHIEF == 'double' else 'intruder')
        if MISCHIEF == 'volatile_map':
            self.create_publisher(SemanticMapMessage, topics.SEMANTIC_MAP, 1)

    def on_frame(self, frame):
        if frame.index == MISCHIEF_FRAME:
            if MISCHIEF == 'die':
                os.abort()
            if MISCHIEF == 'stop_clock':
                self.stop_clock()
            if ORDER == 'upset':
                upset()
            if MISCHIEF == 'stop_nodes':
                for node in ('map_recorder', 'evaluator'):
                    send(node, signal.SIGSTOP)
                os.kill(os.getpid(), signal.SIGSTOP)
            if 'hang' in (MISCHIEF, ORDER) or (ORDER[:1] == '/' and Path(ORDER).exists()):
                hang()
            if MISCHIEF in ('intruder', 'double'):
                print('now', file=self.intruder.stdin, flush=True)
                # Longer than a look at the graph takes; the others acknowledge meanwhile.
                time.sleep(1000)
            if MISCHIEF == 'fill_disk':
                fill_disk(os.environ['TEST_DISK'])
            if MISCHIEF == 'never_acknowledge':
                return
        if MISCHIEF == 'slow':
            time.sleep(SLOW_S)
        self.points.append(frame.world_points()[::20])
        self.acks.acknowledge(frame.stamp_ns)

    def stop_clock(self):
        send('simulator_bridge', signal.SIGSTOP)
        # The frame was published together with its time, which may come a moment later.
        rclpy.spin_once(self, timeout_sec=0.5)
        before = self.get_clock().now()
        time.sleep(1.0)
        if before.nanoseconds and self.get_clock().now() == before:
            print('the clock stands', flush=True)

    def on_state(self, state):
        if state.state != RunState.STATE_FINISHED or self.finished:
            return
        self.finished = True
        if MISCHIEF == 'no_map':
            return
        if 'stop_evaluator' in (MISCHIEF, ORDER):
            send('evaluator', signal.SIGSTOP)
        if MISCHIEF == 'die_before_map':
            os.abort()
        if MISCHIEF in ('huge', 'no_chunks'):
            self.publish_announcement()
            return
        points = np.concatenate(self.points)
        label_set, labels = None, None
        if MISCHIEF == 'wrong_labels':
            label_set = LabelSet.from_names('mine', ['thing'], first_id=40_000)
            labels = np.full(len(points), 40_000, np.int32)
        if MISCHIEF == 'nan':
            points[0] = np.nan
        self.maps.publish(
            SemanticMap(
                MapHeader(Provenance('foreign'), 'odom' if MISCHIEF == 'wrong_frame' else 'world'),
                dense=DenseMap(points, labels=labels),
                label_set=label_set,
            ),
            is_final=True,
        )
        if MISCHIEF == 'leave':
            time.sleep(2.0)
            os._exit(0)

    def publish_announcement(self):
        message = SemanticMapMessage(
            participant='mapper', is_final=True, digest='0' * 64, payload_size=1, chunk_count=1,
            payload_format=SemanticMapMessage.FORMAT_ARCHIVE_1,
        )  # fmt: skip
        message.header.frame_id = 'world'
        if MISCHIEF == 'huge':
            message.method = 'x' * HUGE
        self.announcer = self.create_publisher(
            SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile()
        )
        self.announcer.publish(message)


def intruder(name):
    """Return a process that publishes maps as node `name` once it reads a line."""
    process = subprocess.Popen(
        [sys.executable, str(INTRUDER), name, topics.SEMANTIC_MAP, 'wait'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdout.readline()
    return process


def fill_disk(folder):
    """Leave no space, once a recorder has written the messages so far."""
    [bag] = Path(folder).glob('*/*/bag/*.mcap')
    before = bag.stat().st_size
    while bag.stat().st_size == before:
        time.sleep(0.1)
    with open(f'{folder}/filler', 'wb', buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def hang():
    """Stand still; where a file is the order, until it is gone."""
    print('hanging', flush=True)
    while ORDER[:1] != '/' or Path(ORDER).exists():
        time.sleep(0.1)


def upset():
    """Set the clock back by an hour and stop every process of the run for a second, one by one."""
    with open(os.environ['FAULTS_CLOCK'], 'w') as file:
        file.write('-3600')
    runner = psutil.Process(os.getppid())
    nodes = [item for item in runner.children() if item.name() in NODES]
    for process in (*nodes, runner):
        process.suspend()
        time.sleep(1.0)
        process.resume()
    pause = 'kill -STOP $0; sleep 1; kill -CONT $0'
    subprocess.Popen(['sh', '-c', pause, str(os.getpid())], start_new_session=True)
    print(f'upset {len(nodes)} nodes', flush=True)


def send(node, number):
    """Signal another node of the run."""
    for process in psutil.Process(os.getppid()).children():
        if process.name() == node[:15]:
            process.send_signal(number)


RESTARTS = {'restart': ('die', 'good'), 'restart_before_map': ('die_before_map', 'no_map')}
if MISCHIEF in RESTARTS:
    # As a script does that starts a node again which has crashed.
    for kind in RESTARTS[MISCHIEF]:
        subprocess.call([sys.executable, __file__, kind, *sys.argv[2:]])
    raise SystemExit(1)
rclpy.init()
rclpy.spin(ForeignMapper())
