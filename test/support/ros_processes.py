"""Processes of tests in a private domain; every one of them ends with the test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from osmabench_ros.base.contract import FRAME_TOPICS
from osmabench_ros.bringup.spec.isolation import isolated_environment
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bags.recording_report import read_report
from support import SUPPORT, TESTS
from support.waiting import wait_until


@contextmanager
def process(domain: int, *command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Yield a Python process, told to end and if need be made to when the block is left."""
    environment = {**isolated_environment(domain), 'PYTHONPATH': str(TESTS)}
    if extra := os.environ.get('PYTHONPATH'):
        environment['PYTHONPATH'] += os.pathsep + extra
    pipes = dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.PIPE)
    running = subprocess.Popen(
        [sys.executable, *command], env=environment, text=True, **{**pipes, **options}
    )
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


class Listener:
    """What a process of its own hears of topics, serialised."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        self._running = running
        assert self._told() == 'listening'

    def wait(self, topic: str, count: int) -> None:
        """Wait until a topic has brought so many messages; fail if it does not."""
        assert self._running.stdin is not None
        print(topic, count, file=self._running.stdin, flush=True)
        assert int(self._told()) >= count, topic

    def end(self) -> list[list[str]]:
        """Return topic and bytes, in hexadecimal, of all that was heard, in order."""
        output, errors = self._running.communicate('end\n', timeout=180)
        assert self._running.returncode == 0, errors
        heard: list[list[str]] = json.loads(output)
        return heard

    def _told(self) -> str:
        assert self._running.stdout is not None
        return self._running.stdout.readline().strip()


@contextmanager
def listening(domain: int, *topics: str) -> Iterator[Listener]:
    """Yield a process that hears topics."""
    with process(domain, str(SUPPORT / 'raw_listener.py'), *topics) as running:
        yield Listener(running)


def wait_until_recorded(folder: Path, frames: int) -> None:
    """Wait until a recorder has received all frames of a talker, or counted those it missed."""
    names = {f'/{name}' for name in FRAME_TOPICS}

    def recorded() -> bool:
        try:
            report = read_report(folder)
        except SequenceError:  # not yet written
            return False
        counts = [
            item.received + item.lost_by_middleware
            for item in report.topics
            if item.topic in names
        ]
        return len(counts) == len(names) and min(counts) >= frames

    wait_until(recorded, state=lambda: f'for {frames} frames in {folder}')


def node_arguments(name: str, parameters: Mapping[str, Any]) -> list[str]:
    """Return what runs a node of this package, active at once."""
    settings = {**parameters, 'autostart': True}
    pairs = [item for key, value in settings.items() for item in ('-p', f'{key}:={_text(value)}')]
    return ['-m', f'osmabench_ros.nodes.{name}', '--ros-args', *pairs]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return '[' + ', '.join(f'"{item}"' for item in value) + ']'
    return f'"{value}"' if isinstance(value, str) else str(value)


def interrupt(running: subprocess.Popen[str], timeout_s: float = 180.0) -> tuple[int, str]:
    """Send Ctrl-C; return the exit code and all output."""
    running.send_signal(signal.SIGINT)
    output, errors = running.communicate(timeout=timeout_s)
    return running.returncode, (output or '') + (errors or '')
