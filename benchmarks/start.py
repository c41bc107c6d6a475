"""Prints how long the osmabench command takes until it has said its help, or what is wrong.

    python benchmarks/start.py

The least of some calls counts: what else the machine does only adds to it.
"""

import sys
from typing import Any

import typer
from measuring import timed_command

from osmabench_ros.cli.main import app

CALLS = 5
LIMIT_S = 0.5


def measured(words: list[str]) -> tuple[float, float]:
    """Return the least wall time and processor time of some calls, in seconds."""
    walls_s, spent_s, _ = zip(*(timed_command(words) for _ in range(CALLS)), strict=True)
    return min(walls_s), min(spent_s)


def main() -> None:
    """Print a row a call."""
    print(f'{"osmabench ...":28} {"wall, s":>8} {"processor, s":>13}')
    calls = [['--help'], ['no-such-command'], ['run'], ['run', '--no-such-option']]
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        calls += [[name, *verb, '--help'] for verb in ([], *zip(getattr(command, 'commands', ())))]
    slowest_s = 0.0
    for words in calls:
        wall_s, cpu_s = measured(words)
        print(f'{" ".join(words):28} {wall_s:8.2f} {cpu_s:13.2f}', flush=True)
        slowest_s = max(slowest_s, wall_s)
    print(f'the slowest in {slowest_s:.2f} s of at most {LIMIT_S} s')
    sys.exit(slowest_s > LIMIT_S)


if __name__ == '__main__':
    main()
