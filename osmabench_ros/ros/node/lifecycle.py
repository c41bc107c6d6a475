"""The lifecycle node that every node of this package is."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic

from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from osmabench_ros.base.settings import Model
from osmabench_ros.errors import ConfigError, OsmabenchError, make_printable
from osmabench_ros.ros.node.diagnostics import DiagnosticsPublisher, Health, Level
from osmabench_ros.ros.node.parameters import (
    PLAN_FILE,
    declare,
    parameters_of,
    read_settings,
    starts_itself,
)
from osmabench_ros.ros.qos import create_checked_subscription, latched_profile

# Starts the line on stderr that says why a node ended.
ERROR_PREFIX = 'osmabench: error: '

# Label of the state in which a node may get another plan.
UNCONFIGURED = 'unconfigured'


class WhileActive(MutuallyExclusiveCallbackGroup):
    """Callback group that runs callbacks only while the node is active."""

    def __init__(self) -> None:
        super().__init__()
        self.active = False

    def can_execute(self, entity: Any) -> bool:
        """Return whether the executor may execute an entity."""
        return self.active and bool(super().can_execute(entity))


class BenchmarkNode(LifecycleNode, Generic[Model]):
    """A lifecycle node that ends the process with a reason and an exit code if it fails.

    Subclasses implement `configure`, `activate`, `deactivate` and `cleanup`; an OsmabenchError
    from them, or from a callback wrapped by `guarded`, is a failure. All callbacks run in one
    thread, the one that `run_node` spins in, so a simulator may live there.

    The whole lifecycle may be gone through again and again in one process. What `configure` and
    later callbacks create (publishers, subscriptions, timers, services, clients, action servers)
    is destroyed after `cleanup`, so `cleanup` only frees the rest, and `configure` sets all state
    of the job, whatever an earlier round left. The next round may have another plan: the
    parameter `plan_file`, and no other, may be set while the node is unconfigured.

    While the node is not active, its subscriptions and timers rest. Messages wait in the queues of
    DDS, as long as their QoS lets them: none that is kept is lost, and nothing is acknowledged
    that was not processed. Services and actions are served all the time, and must refuse what
    needs an active node. Timers run on the steady clock, so that `use_sim_time` stops no watchdog.
    """

    # None until rclpy has made what every node has; that works whether active or not.
    _while_active: WhileActive | None = None

    def __init__(self, name: str, model: type[Model]) -> None:
        super().__init__(name)
        self._change_state = self._service_change_state.callback
        self._service_change_state.callback = self._on_change_state
        self._while_active = WhileActive()
        self._failure = ''
        self._diagnostics = DiagnosticsPublisher(self, self._health_or_failure)
        self._lasting = self._entities()
        self.exit_code: int | None = None
        self._model = model
        self.settings = declare(self, model)
        self._next_settings: Model | None = None
        self.autostart = starts_itself(self)
        self.add_on_set_parameters_callback(self._on_change_of_parameters)

    def _on_change_of_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        """Refuse changes, so that a run keeps its settings; between runs take another plan."""
        names, state = [item.name for item in parameters], self.state_label
        if names != [PLAN_FILE.name] or state != UNCONFIGURED:
            why = f'{PLAN_FILE.name} alone may be set, while {UNCONFIGURED}, and it is {state}'
            return SetParametersResult(successful=False, reason=why)
        try:
            self._next_settings = read_settings(self, self._model, parameters[0].value)
        except OsmabenchError as error:
            return SetParametersResult(successful=False, reason=make_printable(str(error)))
        return SetParametersResult(successful=True)

    @property
    def state_label(self) -> str:
        """Name of the node's state in the lifecycle; rclpy has no public name for it."""
        return str(self._state_machine.current_state[1])

    @property
    def active(self) -> bool:
        """Whether the node is in the state active."""
        return self._while_active is not None and self._while_active.active

    def create_subscription(
        self, msg_type: type[Any], topic: str, callback: Any, qos_profile: Any, **options: Any
    ) -> Subscription:
        """Create a subscription that is paused while the node is not active."""
        if options.get('callback_group') is None:
            options['callback_group'] = self._while_active
        return super().create_subscription(msg_type, topic, callback, qos_profile, **options)

    def subscribe(
        self,
        message_type: type[Any],
        topic: str,
        callback: Callable[[Any], None],
        profile: QoSProfile | None = None,
    ) -> None:
        """Take messages of a topic, of a latched one by default; sizes are checked first."""
        profile = profile or latched_profile()
        create_checked_subscription(self, message_type, topic, callback, profile)

    def create_timer(self, timer_period_sec: float, callback: Any, **options: Any) -> Timer:
        """Create a timer on the steady clock that is paused while the node is not active."""
        if options.get('callback_group') is None:
            options['callback_group'] = self._while_active
        options.setdefault('clock', Clock(clock_type=ClockType.STEADY_TIME))
        return super().create_timer(timer_period_sec, callback, **options)

    def health(self) -> Health:
        """Return the health for /diagnostics; called in every lifecycle state."""
        return Health(message='active' if self.active else 'not active')

    def publish_health(self) -> None:
        """Publish the health now, without waiting for the timer."""
        if self.context.ok():
            self._diagnostics.publish()

    def _health_or_failure(self) -> Health:
        return Health(Level.ERROR, self._failure) if self._failure else self.health()

    def keep_entities(self) -> None:
        """Keep the entities made so far, in the constructor, through `cleanup`."""
        self._lasting = self._entities()

    def configure(self) -> None:
        """Allocate resources, and reset the state of an earlier configuration."""

    def activate(self) -> None:
        """Start to work."""

    def deactivate(self) -> None:
        """Pause the work."""

    def cleanup(self) -> None:
        """Free the resources of `configure`; must not fail if that never ran."""

    def owes_result(self) -> bool:
        """Return whether the process fails if it ends now, as one that owes a verdict."""
        return False

    def required(self, name: str) -> Path:
        """Return a required path parameter; ConfigError if it is not set."""
        value: Path | None = getattr(self.settings, name)
        if value is None:
            raise ConfigError(
                f'node {self.get_name()}: parameter "{name}" is empty; name a file or folder'
            )
        return value

    def finish(self, exit_code: int = 0) -> None:
        """End the process once the current callback returns; the first failure counts."""
        if not self.exit_code:
            self.exit_code = exit_code

    def fail(self, error: Exception) -> None:
        """Log an error and end the process."""
        code = error.exit_code if isinstance(error, OsmabenchError) else 1
        # On a disk that is full the log cannot take it; /diagnostics shows it all the same.
        text = make_printable(str(error))
        with contextlib.suppress(OSError):
            print(f'{ERROR_PREFIX}{text}', file=sys.stderr, flush=True)  # noqa: T201
        self.get_logger().fatal(text)
        self._failure = text
        self.publish_health()
        self.finish(code)

    def guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
        """Wrap a callback so that an OsmabenchError makes the node fail."""

        def call(*arguments: Any) -> None:
            if self.exit_code is not None:
                return
            try:
                callback(*arguments)
            except OsmabenchError as error:
                self.fail(error)

        return call

    def _on_change_state(
        self, request: ChangeState.Request, response: ChangeState.Response
    ) -> ChangeState.Response:
        """Refuse a transition that is invalid in this state; rclpy would end the node."""
        wanted = request.transition
        possible = {entry[0] for entry in self._state_machine.available_transitions}
        # A label, which goes before the number, is looked up and refused by rclpy.
        if wanted.label or wanted.id in possible:
            return self._change_state(request, response)
        self.get_logger().warning(
            f'transition {wanted.id} is not possible in state {self.state_label}'
        )
        response.success = False
        return response

    def _transition(self, step: Callable[[], None]) -> TransitionCallbackReturn:
        # rclpy swallows exceptions of transition callbacks, so they must be reported here.
        try:
            step()
        except OsmabenchError as error:
            self.fail(error)
            return TransitionCallbackReturn.FAILURE
        except Exception as error:
            self.get_logger().fatal(traceback.format_exc())
            self.fail(error)
            return TransitionCallbackReturn.ERROR
        return TransitionCallbackReturn.SUCCESS

    def on_configure(self, _state: LifecycleState) -> TransitionCallbackReturn:
        """Handle the transition requested by the lifecycle manager."""
        if self._next_settings is not None:
            self.settings, self._next_settings = self._next_settings, None
            self.remove_on_set_parameters_callback(self._on_change_of_parameters)
            self.set_parameters(parameters_of(self.settings))
            self.add_on_set_parameters_callback(self._on_change_of_parameters)
        result = self._transition(self.configure)
        if result == TransitionCallbackReturn.FAILURE:
            self._release()
        return result

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Handle the transition requested by the lifecycle manager."""
        super().on_activate(state)
        result = self._transition(self.activate)
        self._set_active(result == TransitionCallbackReturn.SUCCESS)
        return result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Handle the transition requested by the lifecycle manager."""
        self._set_active(False)
        result = self._transition(self.deactivate)
        super().on_deactivate(state)
        return result

    def on_cleanup(self, _state: LifecycleState) -> TransitionCallbackReturn:
        """Handle the transition requested by the lifecycle manager."""
        return self._transition(self._release)

    def on_shutdown(self, _state: LifecycleState) -> TransitionCallbackReturn:
        """Handle the transition requested by the lifecycle manager."""
        result = self._transition(self._release)
        self.finish(0)
        return result

    def on_error(self, _state: LifecycleState) -> TransitionCallbackReturn:
        """Free everything after an unexpected error that has been reported already."""
        try:
            self._release()
        except Exception:
            self.get_logger().fatal(traceback.format_exc())
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    def _set_active(self, active: bool) -> None:
        assert self._while_active is not None
        self._while_active.active = active

    def _release(self) -> None:
        self._set_active(False)
        self.cleanup()
        for entity, destroy in self._entities().items():
            if entity not in self._lasting:
                self._managed_entities.discard(entity)
                destroy(entity)

    def _entities(self) -> dict[Any, Callable[[Any], Any]]:
        """Return all entities of the node, each with the function that destroys it."""
        kinds: tuple[tuple[Iterable[Any], Callable[[Any], Any]], ...] = (
            (self.timers, self.destroy_timer),
            (self.subscriptions, self.destroy_subscription),
            (self.services, self.destroy_service),
            (self.clients, self.destroy_client),
            (self.waitables, lambda waitable: waitable.destroy()),
            (self.publishers, self.destroy_publisher),
        )
        return {entity: destroy for entities, destroy in kinds for entity in entities}
