"""Replaces a node: follows its arguments, and prints its findings."""

import json
import os
import random
import signal
import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np

from osmabench_ros.bringup.definition import NodeSpec

HEAVY = ('torch', 'open3d', 'OpenGL', 'moderngl')


@dataclass(frozen=True)
class ScriptedNode(NodeSpec):
    """The specification that the runner has of it."""

    name: str = 'node'
    words: tuple[str, ...] = ()

    @property
    def module(self):
        """This module."""
        return 'support.scripted_node'

    def arguments(self, _folder):
        """Return its instructions."""
        return list(self.words)


def main():
    words = sys.argv[1:]
    found = {
        'pid': os.getpid(),
        'session': os.getsid(0),
        'group': os.getpgrp(),
        'directory': os.getcwd(),
        'program': sys.argv[0],
        'threads': len(os.listdir('/proc/self/task')),
        'random': [random.random(), np.random.random()],  # noqa: NPY002
        'heavy': [name for name in HEAVY if name in sys.modules],
        'signals': [signal.getsignal(n) is signal.SIG_DFL for n in (15, 17)],
        'environment': dict(os.environ),
    }
    print(json.dumps(found), flush=True)
    warnings.warn('said in every run', stacklevel=1)
    os.environ['LEFT_BEHIND'] = 'by a node'
    os.chdir('/')
    if 'memory' in words:
        held = random.randbytes(1) * (300 << 20)
        time.sleep(0.5)
        print(len(held))
    if 'abort' in words:
        os.abort()
    if 'raise' in words:
        raise ValueError('not foreseen')
    if 'wait' in words:
        print('waiting', flush=True)
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            print('interrupted', flush=True)
    return int(words[0])
