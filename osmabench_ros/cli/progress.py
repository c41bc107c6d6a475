"""Progress bars for long work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def shown_progress() -> Iterator[Callable[[str, float], None]]:
    """Yield a callback that draws (what, fraction) on stderr; a line a step without a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _line_printer(console)
        return
    with Progress(
        SpinnerColumn(),
        TextColumn('{task.description}', markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as bars:
        task = bars.add_task('', total=1.0)
        yield lambda text, fraction: bars.update(task, description=text, completed=fraction)


def _line_printer(console: Console) -> Callable[[str, float], None]:
    last = ''

    def show(text: str, fraction: float) -> None:
        nonlocal last
        del fraction
        if text != last:
            last = text
            console.print(text, highlight=False, markup=False, soft_wrap=True)

    return show
