"""Functions that the tests of the fence call in it: honest readers, and those that files break."""

import ctypes
import os
import sys
import warnings

import numpy as np

from osmabench_ros.errors import OsmabenchWarning, SceneError


def double(path, *, factor=2):
    values = np.frombuffer(path.read_bytes(), np.uint8)
    return {
        'values': values * np.uint8(factor),
        'nested': [{1: np.float32([1.5])}, None, ('x', b'y')],
        'empty': np.zeros((0, 3)),
        'columns': np.asfortranarray(np.arange(6).reshape(2, 3)),
        'nan': float('nan'),
    }


def list_modules(path):
    return sorted(sys.modules)


def list_environment(path):
    return sorted(os.environ)


def name_server(path):
    return os.getppid()


def warn(path):
    warnings.warn(f'{path.name} is odd', OsmabenchWarning, stacklevel=1)


def refuse(path):
    raise SceneError(f'{path.name} has no triangles')


def spin(path):
    while True:
        pass


def sleep(path):
    import time

    time.sleep(60)


def allocate(path):
    np.ones(2**30)


def return_much(path):
    return [np.broadcast_to(np.uint8(0), 2**30)]


def return_shared(path):
    value = ['x' * 100]
    for _ in range(30):
        value = [value, value]
    return value


def return_cycle(path):
    value = []
    value.append(value)
    return value


def return_code(path):
    return print


def write_much(path):
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.truncate(2**40)


def crash(path):
    ctypes.string_at(0)


def leave(path):
    os._exit(0)


def recurse(path):
    recurse(path)


def fail(path):
    raise KeyError('colour')
