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
# Of the temporary folder that the worker is started in.
FOLDER_PREFIX = 'osmabench_habitat_'


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
            reply = {'result': handlers.answer(request['command'], request['arguments'])}
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
        # Other children of the parent may hold the pipe open, so its end is not enough.
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
    """Answers requests, those after `open` by the scene and those after `walk` by its mesh too."""

    def __init__(self, frame_descriptor: int) -> None:
        self._frame_descriptor = frame_descriptor
        self._session: Any = None
        self._walking: Any = None

    def answer(self, command: str, arguments: dict[str, Any]) -> Any:
        """Return the JSON result of the method of a name."""
        for owner in (self, self._session, self._walking):
            if hasattr(owner, command):
                return getattr(owner, command)(**arguments)
        raise ValueError(f'no scene or navigation mesh is open for "{command}"')

    def hello(self) -> dict[str, Any]:
        """Import Habitat-Sim and return the versions."""
        import habitat_sim

        return {'habitat_sim': habitat_sim.__version__, 'python': platform.python_version()}

    def open(self, **config: Any) -> dict[str, Any]:
        """Load a scene and return its inventory."""
        from .session import Session

        self._session = Session(config, self._frame_descriptor)
        inventory: dict[str, Any] = self._session.inventory()
        return inventory

    def walk(self, **settings: Any) -> dict[str, Any]:
        """Make a navigation mesh."""
        from .walking import Walking

        self._walking = Walking(self._session.geometry, settings)
        return {'height_m': self._walking.height_m, 'area_m2': self._walking.area_m2}

    def close(self) -> None:
        """Free the scene; the loop ends after this."""
        if self._session is not None:
            self._session.close()
