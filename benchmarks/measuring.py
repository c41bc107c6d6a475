"""What benchmarks share: how they time other programs, and how they print."""

import resource
import subprocess
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

console = Console(width=None if sys.stdout.isatty() else 110)


def empty_table(title: str, texts: Sequence[str], figures: Sequence[str]) -> Table:
    """Return a table without rows; the columns of figures, on the right, end in one line."""
    found = Table(*texts, title=title)
    for column in figures:
        found.add_column(column, justify='right')
    return found


def timed_command(words: Sequence[str]) -> tuple[float, float, str]:
    """Return wall time and processor time of an osmabench command, in s, and what it warned of."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, '-m', 'osmabench_ros.cli', *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall_s = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, spent_s, done.stderr
