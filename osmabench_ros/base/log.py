"""Messages of a command: how the terminal shows them and how many, and the log of a matrix.

Steps are INFO where no bar shows them and DEBUG below a bar; details are DEBUG.
"""

import logging
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from osmabench_ros.errors import OsmabenchError, OsmabenchWarning, make_printable


def send_warnings(send: Callable[[str], object]) -> None:
    """Send the text of each `OsmabenchWarning`; other warnings go to stderr."""

    def show(
        message: Warning | str, category: type[Warning], file: str, line: int, *_more: object
    ) -> None:
        if issubclass(category, OsmabenchWarning):
            send(str(message))
        else:
            sys.stderr.write(warnings.formatwarning(message, category, file, line))

    warnings.showwarning = show  # type: ignore[assignment]


def format_warning(message: str) -> str:
    """Return the lines of a warning for stderr, broken between words for a terminal."""
    text = make_printable(f'warning: {message}')
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        text = textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)
    return f'{text}\n'


LOG = logging.getLogger('osmabench_ros')
# In the folder of a matrix: steps, details, warnings and errors of the commands that ran it.
LOG_FILE = 'osmabench.log'


class TerminalHandler(logging.Handler):
    """Writes messages to stderr, as it is at that moment: a bar redirects it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message as lines of printable characters."""
        if record.levelno == logging.WARNING:
            text = format_warning(record.getMessage())
        else:
            text = make_printable(self.format(record)) + '\n'
        sys.stderr.write(text)
        sys.stderr.flush()  # before the command prints its results


class LogFileHandler(logging.FileHandler):
    """Appends to a file that is opened at the first message; a full disk stops no run."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, encoding='utf-8', delay=True)
        self.setFormatter(logging.Formatter('{asctime} {levelname}: {message}', style='{'))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, unless the file cannot be written."""
        with suppress(OSError):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Drop a message that could not be written."""


def set_verbosity(*, verbose: bool = False, quiet: bool = False) -> None:
    """Let the terminal show steps and warnings, also details, or errors only."""
    for handler in [item for item in LOG.handlers if isinstance(item, TerminalHandler)]:
        LOG.removeHandler(handler)
    shown = logging.DEBUG if verbose else logging.ERROR if quiet else logging.INFO
    LOG.addHandler(TerminalHandler(shown))
    LOG.setLevel(logging.DEBUG)
    LOG.propagate = False


def terminal_level() -> int:
    """Return the lowest level that the terminal shows."""
    shown = [item.level for item in LOG.handlers if isinstance(item, TerminalHandler)]
    return shown[0] if shown else logging.INFO


@contextmanager
def log_to(directory: Path) -> Iterator[None]:
    """Append all messages to the log in a folder; an OsmabenchError is logged and names it."""
    file = directory / LOG_FILE
    handler = LogFileHandler(file)
    LOG.addHandler(handler)
    try:
        yield
    except OsmabenchError as error:
        LOG.debug('the command failed', exc_info=True)
        error.log_file = file
        raise
    finally:
        LOG.removeHandler(handler)
        with suppress(OSError):  # the last lines may not fit on the disk
            handler.close()
