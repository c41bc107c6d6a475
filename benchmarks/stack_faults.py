"""How many faults of a stack `osmabench doctor --stack` finds while the machine is busy.

    python benchmarks/stack_faults.py
    python benchmarks/stack_faults.py --rounds 1 --busy 0

Each of fifteen faults alone, in a stack that runs before doctor does (early) and in one whose
publishers come 3 s after doctor has begun to listen (late), and a stack without a fault. Every
look is the real command with its defaults, in its own process; next to them run processes
that do nothing but keep a processor busy. Exits with 0 if every fault was found and named in
every round, and the stack without one passed.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from measuring import console
from rich.progress import track
from rich.table import Table

from osmabench_ros.bringup.isolation import make_isolated_environment, private_domain

# By name in faulty_stacks.py: the topic that fails, and what must be said of it.
FAULTS = {
    'silent depth': ('camera/depth/image_rect', 'no message came'),
    'colour in YUV': ('camera/color/image_raw', 'encoding is yuv422_yuy2'),
    'millimetres in 32FC1': ('camera/depth/image_rect', 'millimetres in 32FC1'),
    'zeros in 32FC1': ('camera/depth/image_rect', 'pixels are 0'),
    'picture of depth': ('camera/depth/image_rect', 'encoding is mono8'),
    'depth of another size': ('camera/depth/image_rect', '12 x 9'),
    'depth stamped later': ('camera/depth/image_rect', 'the nearest is 3.0 ms away'),
    'no stamps': ('camera/color/image_raw', 'header.stamp is 0'),
    'wall time beside a clock': ('camera/color/image_raw', '/clock is published'),
    'no calibration': ('camera/color/camera_info', 'not calibrated'),
    'distorted images': ('camera/color/camera_info', 'images are distorted'),
    'best effort': ('camera/color/image_raw', 'QoS: /driver publishes best effort'),
    'pose of another type': ('ground_truth/camera_pose', 'publishes nav_msgs/msg/Odometry'),
    'images in camera_link': ('camera/color/image_raw', 'frame_id is "camera_link"'),
    'pose in map': ('ground_truth/camera_pose', 'frame_id is "map"'),
}

# What is waited for: that the node is there, and that it publishes.
LINES = {'early': 2, 'late': 1}

AFTER_S = {'early': '0', 'late': '3'}
VERDICTS = ('found', 'wrong reason', 'false ok')
STACKS = Path(__file__).with_name('faulty_stacks.py')


@dataclass(frozen=True)
class Look:
    """What doctor said of one stack."""

    fault: str
    time: str
    verdict: str
    text: str


def look(case: tuple[int, str, str]) -> Look:
    """Let doctor look at a stack in its own domain."""
    _, fault, time = case
    with private_domain() as domain:
        environment = make_isolated_environment(domain)
        command = [sys.executable, str(STACKS), '--after', AFTER_S[time], f'{fault}={domain}']
        stack = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert stack.stdout is not None
            for _ in range(LINES[time]):
                stack.stdout.readline()
            doctor = [sys.executable, '-m', 'osmabench_ros.cli', 'doctor', '--stack', '--json']
            done = subprocess.run(
                doctor, env=environment, capture_output=True, text=True, check=False
            )
        finally:
            stack.terminate()
            stack.communicate()
    return Look(fault, time, verdict(fault, done), done.stdout + done.stderr)


def verdict(fault: str, done: subprocess.CompletedProcess[str]) -> str:
    """Say whether the fault was found; a stack without one must pass."""
    if fault == 'none':
        return 'found' if done.returncode == 0 else 'wrong reason'
    if done.returncode == 0:
        return 'false ok'
    part, words = FAULTS[fault]
    findings = json.loads(done.stdout)
    named = any(
        item['level'] == 'failed' and item['part'] == part and words in item['detail']
        for item in findings
    )
    return 'found' if named else 'wrong reason'


@contextmanager
def kept_busy(count: int) -> Iterator[None]:
    """Keep so many processors busy while the block lasts."""
    loops = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def show(looks: list[Look]) -> None:
    """Print the counts of every fault, and what was said where it was not found."""
    counts = Counter((item.fault, item.time, item.verdict) for item in looks)
    table = Table('fault', *AFTER_S, *VERDICTS[1:], box=None)
    for fault in ('none', *FAULTS):
        found = [counts[fault, time, 'found'] for time in AFTER_S]
        bad = [sum(counts[fault, time, name] for time in AFTER_S) for name in VERDICTS[1:]]
        table.add_row(fault, *(str(count) for count in found + bad))
    console.print(table)
    for item in looks:
        if item.verdict != 'found':
            console.print(f'{item.fault}, {item.time}: {item.verdict}', item.text, markup=False)


def main(
    rounds: int = 10,
    busy: Annotated[int, typer.Option(help='processes that only keep busy')] = 2,
    jobs: Annotated[int, typer.Option(help='stacks that are looked at at once')] = 4,
) -> None:
    """Look at every stack, in every round, and print the counts."""
    cases = list(product(range(rounds), ('none', *FAULTS), AFTER_S))
    with kept_busy(busy), ThreadPoolExecutor(jobs) as pool:
        looks = list(track(pool.map(look, cases), total=len(cases), console=console))
    show(looks)
    faults = [item.verdict for item in looks if item.fault != 'none']
    load = ', '.join(f'{value:.1f}' for value in os.getloadavg())
    console.print(
        f'{faults.count("found")} of {len(faults)} faults found, '
        f'{faults.count("false ok")} false ok; load {load} on {os.cpu_count()} processors'
    )
    sys.exit(any(item.verdict != 'found' for item in looks))


if __name__ == '__main__':
    typer.run(main)
