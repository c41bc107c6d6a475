"""The worker's main loop: answers requests until the simulator is gone."""

from __future__ import annotations

import os
import platform
import queue
import select
import shutil
import sys
import threading
import traceback
from typing import Any

from .channel import ChannelClosed, receive, send

PARENT_CHECK_S = 1.0
FOLDER_PREFIX = 'osmabench_habitat_'
"""Of the temporary folder that the worker is started in."""


def main(request_descriptor: int, reply_descriptor: int, frame_descriptor: int) -> None:
    """Serve requests until 'close': replies go to a pipe, images into a file."""
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    reader = threading.Thread(
        target=_read_requests, args=(request_descriptor, requests), daemon=True
    )
    reader.start()
    handlers = _Handlers(frame_descriptor)
    while True:
        request = requests.get()
        try:
            reply = {'result': getattr(handlers, request['command'])(**request['arguments'])}
        except Exception as error:
            traceback.print_exc()
            reply = {'error': str(error) or type(error).__name__, 'kind': type(error).__name__}
        sys.stdout.flush()
        send(reply_descriptor, {'number': request['number'], **reply})
        if request['command'] == 'close':
            return


def _read_requests(descriptor: int, requests: queue.Queue[dict[str, Any]]) -> None:
    """Hand requests to the main thread and end the process as soon as the simulator has died."""
    parent = os.getppid()
    while True:
        # Other children of the parent may hold the pipe open, so its end alone is not enough.
        if select.select([descriptor], [], [], PARENT_CHECK_S)[0]:
            try:
                requests.put(receive(descriptor))
            except ChannelClosed:
                break
        elif os.getppid() != parent:
            break
    folder = os.getcwd()
    if os.path.basename(folder).startswith(FOLDER_PREFIX):  # never another one
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


class _Handlers:
    """One method a command; arguments and results are JSON."""

    def __init__(self, frame_descriptor: int) -> None:
        self._frame_descriptor = frame_descriptor
        self._session: Any = None
        self._walking: Any = None

    def hello(self) -> dict[str, Any]:
        """Import Habitat-Sim and say what there is."""
        import habitat_sim

        return {'habitat_sim': habitat_sim.__version__, 'python': platform.python_version()}

    def open(self, **config: Any) -> dict[str, Any]:
        """Load a scene and return its inventory."""
        from .session import Session

        self._session = Session(config, self._frame_descriptor)
        inventory: dict[str, Any] = self._session.inventory()
        return inventory

    def set_lights(self, **request: Any) -> None:
        """Change the lights, and how they are shaded."""
        self._session.set_lights(**request)

    def render(self, **request: Any) -> None:
        """Draw one pose."""
        self._session.render(**request)

    def render_light(self, **request: Any) -> None:
        """Draw one pose under one light alone."""
        self._session.render_light(**request)

    def move(self, object_id: int, motion: list[list[float]]) -> None:
        """Move an object."""
        self._session.move(object_id, motion)

    def walk(self, **settings: Any) -> dict[str, Any]:
        """Make a navigation mesh."""
        from .walking import Walking

        self._walking = Walking(self._session.geometry, settings)
        return {'height_m': self._walking.height_m, 'area_m2': self._walking.area_m2}

    def random_points(self, count: int, seed: int) -> list[list[float]]:
        """Draw navigable positions."""
        points: list[list[float]] = self._walking.random_points(count, seed)
        return points

    def snapped(self, point: list[float]) -> list[float] | None:
        """Return the navigable position at a point."""
        found: list[float] | None = self._walking.snapped(point)
        return found

    def shortest_path(self, start: list[float], goal: list[float]) -> dict[str, Any]:
        """Return distance and corners of a path."""
        distance_m, points = self._walking.shortest_path(start, goal)
        return {'distance_m': distance_m, 'points': points}

    def follow(self, **request: Any) -> list[list[float]]:
        """Return the states of the greedy follower."""
        states: list[list[float]] = self._walking.follow(request)
        return states

    def scenario(self, goals: int, seed: int) -> dict[str, Any]:
        """Return the states of a drive of OSMa-Bench, and the goal of each part of it."""
        states, numbers = self._walking.scenario(goals, seed)
        return {'states': states, 'goals': numbers}

    def close(self) -> None:
        """Free the scene; the loop ends after this."""
        if self._session is not None:
            self._session.close()
