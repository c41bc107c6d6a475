"""The lifecycle node that every node of this package is."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from osmabench_ros.errors import OsmabenchError
from osmabench_ros.ros.diagnostics import DiagnosticsPublisher, Health, Level
from osmabench_ros.ros.parameters import ParameterSpec, declare

ERROR_PREFIX = 'osmabench: error: '
"""Starts the line on stderr that says why a node ended."""

MAX_REASON = 4000
"""Characters of a failure that are reported."""

AUTOSTART = ParameterSpec(
    'autostart', False, 'Configure and activate without waiting for a lifecycle manager.'
)


def shortened(error: Exception) -> str:
    """Return what an error says, without the megabytes that a message may have had in a name."""
    text = str(error)
    return text if len(text) <= MAX_REASON else f'{text[:MAX_REASON]} ...'


def _refuse_change(_parameters: list[Parameter]) -> SetParametersResult:
    """Keep what was set at the start: nothing of a run may be bent while it goes on."""
    return SetParametersResult(successful=False, reason='parameters are set when a node starts')


class WhileActive(MutuallyExclusiveCallbackGroup):
    """Lets callbacks run only while the node is active."""

    def __init__(self) -> None:
        super().__init__()
        self.active = False

    def can_execute(self, entity: Any) -> bool:
        """Return whether the executor is to look for work of an entity."""
        return self.active and bool(super().can_execute(entity))


class BenchmarkNode(LifecycleNode):
    """A lifecycle node whose failures end the process with a reason and an exit code.

    Subclasses implement `configure`, `activate`, `deactivate` and `cleanup`; an OsmabenchError
    from them, or from a callback wrapped by `guarded`, is a failure. All callbacks run in one
    thread, the one that `run_node` spins in, so a simulator may live there.

    The whole lifecycle may be gone through again and again in one process. What `configure` and
    later callbacks create (publishers, subscriptions, timers, services, clients, action servers)
    is destroyed after `cleanup`, so `cleanup` only frees the rest, and `configure` sets all state
    of the job anew, whatever an earlier round left.

    While the node is not active, its subscriptions and timers rest. Messages wait in the queues of
    DDS, as long as their QoS lets them: none that is kept is lost, and nothing is acknowledged
    that was not processed. Services and actions are served all the time, and must refuse what
    needs an active node. Timers run on the steady clock, so that `use_sim_time` stops no watchdog.
    """

    _while_active: WhileActive | None = None
    """None until rclpy has made what every node has; that works whether active or not."""

    def __init__(self, name: str, specs: Sequence[ParameterSpec]) -> None:
        super().__init__(name)
        self._change_state = self._service_change_state.callback
        self._service_change_state.callback = self._on_change_state
        self._while_active = WhileActive()
        self._failure = ''
        self._diagnostics = DiagnosticsPublisher(self, self._health_or_failure)
        self._lasting = self._entities()
        self.exit_code: int | None = None
        self.parameter: dict[str, Any] = declare(self, [*specs, AUTOSTART])
        self.add_on_set_parameters_callback(_refuse_change)

    @property
    def active(self) -> bool:
        """Whether the node is in the state active."""
        return self._while_active is not None and self._while_active.active

    def create_subscription(
        self, msg_type: type[Any], topic: str, callback: Any, qos_profile: Any, **options: Any
    ) -> Subscription:
        """Create a subscription that rests while the node is not active."""
        if options.get('callback_group') is None:
            options['callback_group'] = self._while_active
        return super().create_subscription(msg_type, topic, callback, qos_profile, **options)

    def create_timer(self, timer_period_sec: float, callback: Any, **options: Any) -> Timer:
        """Create a timer on the steady clock that rests while the node is not active."""
        if options.get('callback_group') is None:
            options['callback_group'] = self._while_active
        options.setdefault('clock', Clock(clock_type=ClockType.STEADY_TIME))
        return super().create_timer(timer_period_sec, callback, **options)

    def health(self) -> Health:
        """Return how the node is, for /diagnostics; asked in every state of the lifecycle."""
        return Health(message='active' if self.active else 'not active')

    def tell_health(self) -> None:
        """Publish the health now instead of within a second."""
        if self.context.ok():
            self._diagnostics.publish()

    def _health_or_failure(self) -> Health:
        return Health(Level.ERROR, self._failure) if self._failure else self.health()

    def keep_entities(self) -> None:
        """Let what the node has on the graph now, in its constructor, outlive `cleanup`."""
        self._lasting = self._entities()

    def configure(self) -> None:
        """Allocate what the job needs, and forget all of an earlier round."""

    def activate(self) -> None:
        """Start the job."""

    def deactivate(self) -> None:
        """Pause the job."""

    def cleanup(self) -> None:
        """Free what `configure` allocated; must not fail if it never ran."""

    def owes_result(self) -> bool:
        """Return whether the process fails if it is asked to end now.

        As nodes do, one ends with 0 when it is interrupted. Not so one whose exit code is a
        verdict that it has not given yet, or that has not written what it was given.
        """
        return False

    def finish(self, exit_code: int = 0) -> None:
        """End the process once the current callback returns."""
        if self.exit_code is None:
            self.exit_code = exit_code

    def fail(self, error: Exception) -> None:
        """Say why and end the process."""
        code = error.exit_code if isinstance(error, OsmabenchError) else 1
        # On a disk that is full the log cannot take it; /diagnostics tells it all the same.
        text = shortened(error)
        with contextlib.suppress(OSError):
            print(f'{ERROR_PREFIX}{text}', file=sys.stderr, flush=True)  # noqa: T201
        self.get_logger().fatal(text)
        self._failure = text
        self.tell_health()
        self.finish(code)

    def guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
        """Wrap a callback so that an OsmabenchError in it is a failure of the node."""

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
        """Refuse a transition that the state does not have; rclpy would raise, and end us."""
        wanted = request.transition
        possible = {entry[0] for entry in self._state_machine.available_transitions}
        # A label, which goes before the number, is looked up and refused by rclpy.
        if wanted.label or wanted.id in possible:
            return self._change_state(request, response)
        _, state = self._state_machine.current_state
        self.get_logger().warning(f'transition {wanted.id} is not possible in state {state}')
        response.success = False
        return response

    def _transition(self, step: Callable[[], None]) -> TransitionCallbackReturn:
        # rclpy swallows exceptions of transition callbacks, so they must be told here.
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

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer the lifecycle manager."""
        del state
        result = self._transition(self.configure)
        if result == TransitionCallbackReturn.FAILURE:
            self._release()
        return result

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer the lifecycle manager."""
        super().on_activate(state)
        result = self._transition(self.activate)
        self._set_active(result == TransitionCallbackReturn.SUCCESS)
        return result

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer the lifecycle manager."""
        self._set_active(False)
        result = self._transition(self.deactivate)
        super().on_deactivate(state)
        return result

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer the lifecycle manager."""
        del state
        return self._transition(self._release)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer the lifecycle manager."""
        del state
        result = self._transition(self._release)
        self.finish(0)
        return result

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Free everything after an unexpected error, which has been reported already."""
        del state
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
        """Return everything that the node has on the graph, and how to get rid of it."""
        kinds: tuple[tuple[Iterable[Any], Callable[[Any], Any]], ...] = (
            (self.timers, self.destroy_timer),
            (self.subscriptions, self.destroy_subscription),
            (self.services, self.destroy_service),
            (self.clients, self.destroy_client),
            (self.waitables, lambda waitable: waitable.destroy()),
            (self.publishers, self.destroy_publisher),
        )
        return {entity: destroy for entities, destroy in kinds for entity in entities}
