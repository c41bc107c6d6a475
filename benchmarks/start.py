"""Prints how long the osmabench command takes until it has said its help, or what is wrong.

    python benchmarks/start.py

The least of some calls counts: what else the machine does only adds to it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from osmabench_ros.cli.main import COMMANDS

CALLS = 5
LIMIT_S = 0.5


def measured(words: list[str]) -> tuple[float, float]:
    """Return the least wall time and processor time of some calls, in seconds."""
    found = []
    for _ in range(CALLS):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, '-m', 'osmabench_ros.cli', *words], capture_output=True, check=False
        )
        wall_s = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found.append((wall_s, cpu_s))
    return min(item[0] for item in found), min(item[1] for item in found)


def main() -> None:
    """Print a row a call."""
    print(f'{"osmabench ...":24} {"wall, s":>8} {"processor, s":>13}')
    calls = [['--help'], ['no-such-command'], ['run'], ['run', '--no-such-option']]
    for words in [*calls, *([name, '--help'] for name in COMMANDS)]:
        wall_s, cpu_s = measured(words)
        print(f'{" ".join(words):24} {wall_s:8.2f} {cpu_s:13.2f}', flush=True)
    wall_s, _ = measured(['--help'])
    print(f'--help in {wall_s:.2f} s of at most {LIMIT_S} s')
    sys.exit(wall_s > LIMIT_S)


if __name__ == '__main__':
    main()
