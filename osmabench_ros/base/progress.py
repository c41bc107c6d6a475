"""Progress of a job: how it is reported, and how the terminal shows it."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from osmabench_ros.base.log import LOG, set_verbosity, terminal_level

# Gets a text, with a line for each job that goes on, and the fraction done, 0 to 1; may raise to
# stop the job.
Progress = Callable[[str, float], None]

# Begins the part of a text that changes all the time and gets no line in a log.
FRAME_OF = ', frame '


def silent(text: str, fraction: float) -> None:
    """Show nothing."""


def share(progress: Progress, start: float, end: float, prefix: str = '') -> Progress:
    """Return a callback that fills a part of another's range."""
    return lambda text, fraction: progress(prefix + text, start + fraction * (end - start))


def counted(progress: Progress, done: str, total: int, what: str) -> Progress:
    """Return a callback that reports fractions as numbers: '<done> 30 of 184 <what>'."""
    return lambda _text, fraction: progress(
        f'{done} {round(fraction * total)} of {total} {what}', fraction
    )


# The lines below each bar that is shown.
_notices: list[list[str]] = []


def noticed(text: str) -> bool:
    """Show a line below the bar at its next redraw, in a tenth of a second; False without one.

    A signal handler may call it: nothing is written, which could be in the middle of a write.
    """
    for lines in _notices:
        lines.append(text)
    return bool(_notices)


def shortened(line: str, width: int) -> str:
    """Return a line that fits, without some of its middle: its ends say what and how far."""
    if len(line) <= width:
        return line
    end = max(2 * width // 3, 1)
    return f'{line[: max(width - end - 1, 0)]}…{line[-end:]}'


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Yield a callback that logs every step, and draws a bar on stderr if it is a terminal.

    The bar has its own line, above the texts. Without a bar the steps are lines on stderr.
    """
    from rich import progress as bar
    from rich.console import Console, RenderableType
    from rich.text import Text

    if not LOG.handlers:
        set_verbosity()
    console = Console(stderr=True)
    has_bar = console.is_terminal and terminal_level() == logging.INFO
    last: list[str] = []

    def log_steps(text: str) -> None:
        nonlocal last
        before = last
        last = [line.partition(FRAME_OF)[0] for line in text.splitlines()]
        for line in last:
            if line not in before:
                LOG.log(logging.DEBUG if has_bar else logging.INFO, line)

    if not has_bar:
        yield lambda text, _fraction: log_steps(text)
        return

    notices: list[str] = []

    class BarOverLines(bar.Progress):
        def get_renderables(self) -> Iterable[RenderableType]:
            yield self.make_tasks_table(self.tasks)
            for line in self.tasks[0].description.splitlines() if self.tasks else ():
                yield Text(f'  {shortened(line, console.width - 3)}')
            yield from map(Text, notices)

    with BarOverLines(
        bar.SpinnerColumn(),
        bar.BarColumn(bar_width=None),
        bar.TaskProgressColumn(),
        bar.TimeElapsedColumn(),
        bar.TextColumn('left'),
        bar.TimeRemainingColumn(),
        console=console,
        expand=True,
        transient=True,
    ) as bars:
        task = bars.add_task('starting', total=1.0)
        _notices.append(notices)

        def show(text: str, fraction: float) -> None:
            log_steps(text)
            bars.update(task, description=text, completed=fraction)

        try:
            yield show
        finally:
            _notices.remove(notices)
