"""Functions that the tests of the fence call in it: honest readers, and those that files break."""

import ctypes
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.errors import OsmabenchWarning, SceneError


def double(path: Path, *, factor: int = 2) -> dict[str, Any]:
    values = np.frombuffer(path.read_bytes(), np.uint8)
    return {
        'values': values * np.uint8(factor),
        'nested': [{1: np.float32([1.5])}, None, ('x', b'y')],
        'empty': np.zeros((0, 3)),
        'columns': np.asfortranarray(np.arange(6).reshape(2, 3)),
        'nan': float('nan'),
    }


def list_modules(path: Path) -> list[str]:
    return sorted(sys.modules)


def list_environment(path: Path) -> list[str]:
    return sorted(os.environ)


def name_server(path: Path) -> int:
    return os.getppid()


def warn(path: Path) -> None:
    warnings.warn(f'{path.name} is odd', OsmabenchWarning, stacklevel=1)


def refuse(path: Path) -> None:
    raise SceneError(f'{path.name} has no triangles')


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


def return_shared(path: Path) -> Any:
    value: list[Any] = ['x' * 100]
    for _ in range(30):
        value = [value, value]
    return value


def return_cycle(path: Path) -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def return_code(path: Path) -> Any:
    return print


def write_much(path: Path) -> None:
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.truncate(2**40)


def crash(path: Path) -> None:
    ctypes.string_at(0)


def leave(path: Path) -> None:
    os._exit(0)


def recurse(path: Path) -> None:
    recurse(path)


def fail(path: Path) -> None:
    raise KeyError('colour')
