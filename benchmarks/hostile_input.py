"""See that damaged files cause nothing but one clear error, within the limits.

    python benchmarks/hostile_input.py
    python benchmarks/hostile_input.py --reader conceptgraphs --mutations 1000 --seed 7
    python benchmarks/hostile_input.py --only conceptgraphs:7:153

For every reader of the package a small sound file is made and damaged in so many ways: bits are
flipped, pieces cut off or spliced in, numbers grown, in text and in bytes. Each is read in a
process of its own under a watchdog. Counted is what is accepted, refused with an error of this
package, ends in a traceback or the death of the process, takes more time or memory than
the limits, or touches a file outside. Exit code 1 if there is any of the last three; the line
beside it says how to do it again. Seeds make every damage repeatable.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hostile_files import READERS
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

LIMITS = 'memory_mib=256,seconds=10'
MAX_BYTES = 512 << 20
MAX_SECONDS = 15.0
WATCHDOG_S = 60.0
START_S = 120.0
COLUMNS = ('accepted', 'refused', 'traceback', 'over limits', 'outside')
BAD = COLUMNS[2:]
UNDAMAGED = -1


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that must not happen, and how to make it happen again."""

    kind: str
    key: str
    text: str


class Worker:
    """A process that reads damaged files; it is started again when it hangs or falls."""

    def __init__(self, folder: Path, watchdog_s: float) -> None:
        self._folder, self._watchdog_s = folder, watchdog_s
        self._process: subprocess.Popen[str] | None = None

    def ask(self, task: dict[str, Any]) -> dict[str, Any]:
        """Return the report of a task, also if the process does not give one."""
        limit_s = self._watchdog_s
        if self._process is None:
            limit_s += START_S
            self._process = self._started()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f'{json.dumps(task)}\n')
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            ready = selector.select(limit_s)
        line = process.stdout.readline() if ready else ''
        if line:
            return dict(json.loads(line))
        self.close()
        words = f'the process ended with {process.returncode}' if ready else 'it hangs'
        ended = 'traceback' if ready else 'over limits'
        return {'outcome': ended, 'words': words, 'damage': '', 'touched': []}

    def _started(self) -> subprocess.Popen[str]:
        temporary = self._folder / 'temporary'
        temporary.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            'OSMABENCH_LIMITS': LIMITS,
            'TMPDIR': str(temporary),
            'OMP_NUM_THREADS': '1',
        }
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name('hostile_worker.py'))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            cwd=temporary,  # of names relative to an open folder the place is not known
        )

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def judged(report: dict[str, Any]) -> list[str]:
    """Return the columns that a report counts in."""
    kinds = [report['outcome']]
    if report.get('seconds', 0) > MAX_SECONDS or report.get('bytes', 0) > MAX_BYTES:
        kinds.append('over limits')
    if report['touched']:
        kinds.append('outside')
    return kinds


def run_reader(
    name: str, seed: int, numbers: range, work: Path, watchdog_s: float, progress: Any = None
) -> tuple[Counter[str], list[Finding]]:
    """Damage and read one kind of file so many times."""
    worker = Worker(work, watchdog_s)
    counts: Counter[str] = Counter()
    findings: list[Finding] = []
    sound = work / 'sound'
    sound.mkdir()
    (work / 'tree' / 'outside').mkdir(parents=True)
    (work / 'tree' / 'outside' / 'secret').write_text('not to be read')
    READERS[name].write(sound)
    try:
        for number in (UNDAMAGED, *numbers):
            folder = work / 'tree' / 'input'
            shutil.copytree(sound, folder)
            report = worker.ask(
                {'reader': name, 'seed': seed, 'number': number, 'folder': str(folder)}
            )
            shutil.rmtree(folder)
            if number == UNDAMAGED:
                if report['outcome'] != 'accepted':
                    raise SystemExit(f'{name}: the sound file is not read: {report["words"]}')
                continue
            kinds = judged(report)
            counts.update(kinds)
            text = f'{report["damage"]}: {report["words"]} {" ".join(report["touched"][:3])}'
            if 'over limits' in kinds:
                seconds, peak = report.get('seconds', watchdog_s), report.get('bytes', 0)
                text += f' ({seconds:.1f} s, {peak / 2**20:.0f} MiB)'
            findings += [Finding(k, f'{name}:{seed}:{number}', text) for k in kinds if k in BAD]
            if progress is not None:
                progress()
    finally:
        worker.close()
    return counts, findings


def table_of(results: dict[str, Counter[str]]) -> Table:
    """Lay out the counts by reader."""
    table = Table(title='damaged files')
    for heading in ('reader', *COLUMNS):
        table.add_column(heading, justify='left' if heading == 'reader' else 'right')
    for name, counts in sorted(results.items()):
        table.add_row(name, *(str(counts[column]) for column in COLUMNS))
    total = sum(results.values(), Counter[str]())
    table.add_row('all', *(str(total[column]) for column in COLUMNS), style='bold')
    return table


def parsed() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--mutations', type=int, default=200, help='damages a reader')
    parser.add_argument(
        '--reader', action='append', choices=sorted(READERS), metavar='NAME',
        help=f'only this reader; may be given again: {", ".join(sorted(READERS))}',
    )  # fmt: skip
    parser.add_argument('--seed', type=int, default=0, help='of all damages')
    parser.add_argument('--only', metavar='READER:SEED:NUMBER', help='do one of them again')
    parser.add_argument('--jobs', type=int, default=os.cpu_count() or 1, help='at a time')
    parser.add_argument(
        '--watchdog', type=float, default=WATCHDOG_S, metavar='S', help='when a read is ended'
    )
    return parser.parse_args()


def main() -> int:
    """Run, print the counts and what must not happen, return the exit code."""
    options, console = parsed(), Console()
    names, seed, numbers = (
        options.reader or sorted(READERS),
        options.seed,
        range(options.mutations),
    )
    if options.only:
        name, seed_text, number = options.only.split(':')
        names, seed, numbers = [name], int(seed_text), range(int(number), int(number) + 1)
    results: dict[str, Counter[str]] = {}
    findings: list[Finding] = []
    with (
        tempfile.TemporaryDirectory(prefix='hostile_') as folder,
        concurrent.futures.ThreadPoolExecutor(options.jobs) as pool,
        Progress(console=console) as progress,
    ):
        bar = progress.add_task('damaged files', total=len(names) * len(numbers))
        running = {}
        for name in names:
            work = Path(folder) / name
            work.mkdir()
            running[
                pool.submit(
                    run_reader, name, seed, numbers, work, options.watchdog,
                    lambda: progress.advance(bar),
                )
            ] = name  # fmt: skip
        for done in concurrent.futures.as_completed(running):
            results[running[done]], found = done.result()
            findings += found
            for finding in found:
                text = f'{finding.kind}: --only {finding.key}\n    {finding.text}'
                console.print(text, markup=False, soft_wrap=True)
    console.print(table_of(results))
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main())
