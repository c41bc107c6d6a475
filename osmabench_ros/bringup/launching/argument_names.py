"""Refuses arguments that a launch file does not have, which launch ignores; needs no launch."""

import sys
from collections.abc import Sequence
from pathlib import Path

from osmabench_ros.bringup.definition import PACKAGE
from osmabench_ros.errors import ConfigError, choose

# Arguments that launch reads itself, whatever a file declares.
OF_LAUNCH = frozenset(
    ('emulate_tty', 'launch-prefix', 'launch-prefix-filter', 'sigkill_timeout', 'sigterm_timeout')
)


def check_argument_names(arguments: Sequence[str], declared: Sequence[str], file: str) -> None:
    """Check ``'name:=value'`` arguments of a launch file; ConfigError names the nearest."""
    if not _is_commanded(Path(file)):
        return
    for argument in arguments:
        name = argument.partition(':=')[0]
        if name not in OF_LAUNCH:
            problem = f'{Path(file).name} has no argument "{name}" ({argument})'
            choose(name, declared, ConfigError, problem)


def _is_commanded(file: Path) -> bool:
    of_package = (PACKAGE, file.name) in zip(sys.argv, sys.argv[1:], strict=False)
    return of_package or any(
        Path(text).name == file.name and Path(text).absolute() == file.absolute()
        for text in sys.argv[1:]
    )
