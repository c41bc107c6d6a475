"""A lifecycle node of this package goes round and round in one process, over DDS."""

from contextlib import closing

import pytest
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from nodes.node_stage import DOWN, UP
from osmabench_ros.action import Evaluate
from rclpy.action import ActionServer
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from std_msgs.msg import Header
from support.waiting import Spinner

from osmabench_ros.base.settings import setting
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError
from osmabench_ros.ros import matched_client
from osmabench_ros.ros.matched_client import LifecycleClient, MatchedClient
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.qos import lossless_profile


class Voice(Strict):
    """The settings of the parrot."""

    voice: str = setting('shrill', 'How it speaks.')


class Parrot(BenchmarkNode[Voice]):
    """Repeats every message."""

    def __init__(self, name='parrot'):
        super().__init__(name, Voice)
        self.fault = None
        self.cleanups = 0
        self.ticks = 0

    def configure(self):
        self.heard = []
        self.beak = self.create_publisher(Header, 'said', lossless_profile())
        self.create_subscription(Header, 'reported', self.on_told, lossless_profile())
        self.create_timer(0.01, self.on_timer)
        self.create_client(GetState, 'nobody/get_state')
        ActionServer(self, Evaluate, 'judge', lambda goal: Evaluate.Result())
        if self.fault is not None:
            raise self.fault

    def activate(self):
        if self.fault is not None:
            raise self.fault

    def cleanup(self):
        self.cleanups += 1

    def on_told(self, message):
        self.heard.append(message.frame_id)
        self.beak.publish(message)

    def on_timer(self):
        self.ticks += 1


class World(Spinner):
    """A parrot, a node that talks to it, and a manager."""

    def __init__(self):
        super().__init__()
        self.parrot = self.add(Parrot())
        self.keeper = self.make_node('keeper')
        self.echoes = []
        self.mouth = self.keeper.create_publisher(Header, 'reported', lossless_profile())
        self.keeper.create_subscription(
            Header, 'said', lambda message: self.echoes.append(message.frame_id),
            lossless_profile(),
        )  # fmt: skip
        self.manager = LifecycleClient(self.keeper, self.executor, timeout_s=120.0)

    def change(self, *transitions):
        for transition in transitions:
            self.manager.change('parrot', transition, lambda: None)

    def tell(self, word):
        self.mouth.publish(Header(frame_id=word))

    def endpoints(self):
        return self.keeper.count_subscribers('reported'), self.keeper.count_publishers('said')


@pytest.fixture
def world(ros_domain):
    rclpy.init(args=[], domain_id=ros_domain)
    with closing(World()) as made:
        yield made
    rclpy.shutdown()


def test_all_nodes_are_matched_at_once_and_once(world, monkeypatch):
    """DDS matches each again, and nodes that are matched one after another wait for it in turn."""
    made, asked = [], []

    class Noted(MatchedClient):
        def __init__(self, node, kind, name, server):
            super().__init__(node, kind, name, server)
            made.append(server)

        def call(self, request):
            asked.append((len(made), request.transition.id))
            return super().call(request)

    monkeypatch.setattr(matched_client, 'MatchedClient', Noted)
    other = world.add(Parrot('other'))
    world.manager.bring_up(['parrot', 'other'], lambda: None)
    assert made == ['parrot', 'other']
    assert asked == [(2, UP[0]), (2, UP[0]), (2, UP[1]), (2, UP[1])]
    assert world.parrot.active
    assert other.active
    assert not list(world.keeper.clients)


def test_every_round_works_and_leaves_nothing_on_the_graph(world):
    before = len(list(world.parrot.waitables)), len(list(world.parrot.services))
    timers = list(world.parrot.timers)
    for number in range(3):
        world.change(*UP)
        world.spin_until(lambda: world.endpoints() == (1, 1))
        world.spin_until(lambda: world.mouth.get_subscription_count() == 1)
        world.tell(f'round {number}')
        world.spin_until(lambda: world.parrot.heard == [f'round {number}'])  # noqa: B023
        world.spin_until(lambda: world.echoes[-1:] == [f'round {number}'])  # noqa: B023
        world.change(*DOWN)
        world.spin_until(lambda: world.endpoints() == (0, 0))
        assert list(world.parrot.timers) == timers
        assert not list(world.parrot.clients)
    assert world.parrot.cleanups == 3
    assert (len(list(world.parrot.waitables)), len(list(world.parrot.services))) == before
    assert world.parrot.exit_code is None


def test_what_comes_while_inactive_waits(world):
    world.change(Transition.TRANSITION_CONFIGURE)
    world.spin_until(lambda: world.mouth.get_subscription_count() == 1)
    for word in 'abc':
        world.tell(word)
    world.spin_for(0.3)
    assert world.parrot.heard == []
    assert world.parrot.ticks == 0
    world.change(Transition.TRANSITION_ACTIVATE)
    world.spin_until(lambda: world.parrot.heard == ['a', 'b', 'c'])
    world.spin_until(lambda: world.parrot.ticks > 0)
    world.change(Transition.TRANSITION_DEACTIVATE)
    ticks = world.parrot.ticks
    world.tell('d')
    world.spin_for(0.3)
    assert world.parrot.heard == ['a', 'b', 'c']
    assert world.parrot.ticks == ticks
    world.change(Transition.TRANSITION_ACTIVATE)
    world.spin_until(lambda: world.parrot.heard[-1] == 'd')


def test_a_configuration_that_fails_leaves_nothing(world):
    world.parrot.fault = ConfigError('no cage')
    assert world.parrot.trigger_configure() == TransitionCallbackReturn.FAILURE
    assert world.parrot.exit_code == ConfigError.exit_code
    assert world.parrot.cleanups == 1
    world.spin_until(lambda: world.endpoints() == (0, 0))


def test_after_an_unexpected_error_everything_is_freed(world, capfd):
    world.change(Transition.TRANSITION_CONFIGURE)
    world.parrot.fault = ZeroDivisionError('surprise')
    assert world.parrot.trigger_activate() == TransitionCallbackReturn.ERROR
    assert world.parrot.exit_code == 1
    assert 'surprise' in capfd.readouterr().err
    assert not world.parrot.active
    assert world.parrot.cleanups == 1
    world.spin_until(lambda: world.endpoints() == (0, 0))
    assert world.parrot.state_label == 'unconfigured'


@pytest.mark.parametrize('wanted', [Transition(id=1), Transition(label='configure')])
def test_a_transition_that_is_not_possible_is_refused_and_the_node_goes_on(world, wanted):
    client = world.keeper.create_client(ChangeState, 'parrot/change_state')
    world.spin_until(client.service_is_ready)
    answers = []
    for _ in range(3):
        future = client.call_async(ChangeState.Request(transition=wanted))
        world.spin_until(future.done)
        answers.append(future.result().success)
    assert answers == [True, False, False]
    world.change(Transition.TRANSITION_ACTIVATE)
    assert world.parrot.active
    assert world.parrot.exit_code is None


def test_timers_do_not_stop_with_simulated_time(ros_domain):
    rclpy.init(args=['--ros-args', '-p', 'use_sim_time:=true'], domain_id=ros_domain)
    try:
        with closing(World()) as world:
            world.change(*UP)
            world.spin_until(lambda: world.parrot.ticks >= 3)
    finally:
        rclpy.shutdown()


@pytest.mark.parametrize(
    ('name', 'value'),
    [('use_sim_time', True), ('autostart', True), ('autostart', 'x' * 10**6)],
    ids=range(3),
)
def test_no_parameter_changes_while_a_node_runs(name, value, world):
    [result] = world.parrot.set_parameters([Parameter(name, value=value)])
    assert not result.successful
    assert not world.parrot.get_parameter('use_sim_time').value
