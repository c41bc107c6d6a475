"""What is called in the limited child by its tests: honest readers, and what hostile files do."""

import ctypes
import os
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.base.limits.allowance import allowance
from osmabench_ros.errors import OsmabenchWarning, SceneError


def doubled(path: Path, *, factor: int = 2) -> dict[str, Any]:
    values = np.frombuffer(path.read_bytes(), np.uint8)
    return {'values': values * np.uint8(factor), 'nested': [{'one': np.float32([1.5])}, None, 'x'],
            'empty': np.zeros((0, 3)), 'nan': float('nan')}  # fmt: skip


def loaded_modules(path: Path) -> list[str]:
    return sorted(sys.modules)


def environment(path: Path) -> dict[str, str]:
    return dict(os.environ)


def depth_limit(path: Path) -> int:
    return allowance().depth


def process(path: Path) -> int:
    return os.getppid()


def warn(path: Path) -> None:
    warnings.warn(f'{path.name} is odd', OsmabenchWarning, stacklevel=1)


def refuse(path: Path) -> None:
    raise SceneError(f'{path.name} has no triangles')


def read(path: Path, *, other: str) -> str:
    return Path(other).read_text()


def write(path: Path, *, other: str) -> None:
    Path(other).write_text('changed')


def delete(path: Path, *, other: str) -> None:
    Path(other).unlink()


def run(path: Path, *, other: str) -> None:
    os.execv('/bin/cp', ['cp', str(path), other])


def connect(path: Path, *, port: int) -> None:
    socket.create_connection(('127.0.0.1', port), timeout=1).close()


def spin(path: Path) -> None:
    while True:
        pass


def sleep(path: Path) -> None:
    import time

    time.sleep(60)


def allocate(path: Path) -> None:
    np.ones(2**30)


def return_much(path: Path) -> Any:
    return [np.broadcast_to(np.uint8(0), 2**30)]


def write_much(path: Path) -> None:
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.truncate(2**40)


def crash(path: Path) -> None:
    ctypes.string_at(0)


def abort(path: Path) -> None:
    os.abort()


def leave(path: Path) -> None:
    os._exit(0)


def recurse(path: Path) -> None:
    recurse(path)


def fail(path: Path) -> None:
    raise KeyError('colour')


def return_objects(path: Path) -> Any:
    return [object()]


def answer_garbage(path: Path, *, values: str) -> None:
    import tempfile

    folder = Path(tempfile.gettempdir())
    (folder / 'arrays.bin').write_bytes(bytes(64))
    (folder / 'values.json').write_text(values)
    os._exit(0)


def fault_garbage(path: Path, *, fault: str) -> None:
    import tempfile

    (Path(tempfile.gettempdir()) / 'fault.json').write_text(fault)
    os._exit(0)
