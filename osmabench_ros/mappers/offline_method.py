"""How a method that runs offline is installed, run within limits and read: config/methods."""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Literal

from pydantic import Field

from osmabench_ros.base.configuration import described
from osmabench_ros.base.processes import SupervisedProcess
from osmabench_ros.base.strict import FolderName, PathBelow, Strict, validated
from osmabench_ros.errors import ConfigError, RunError, suggestion
from osmabench_ros.sequences.layout import SequenceFormat

_POLL_S = 0.1
_TERMINATE_S = 5.0


@dataclass(frozen=True)
class Limits:
    """Limits of a method: total wall time of its commands and memory of its processes."""

    time_s: float
    memory_bytes: int


def run_limited(
    commands: Sequence[Sequence[str]],
    directory: Path,
    environment: Mapping[str, str],
    log: Path,
    limits: Limits,
) -> None:
    """Run commands in turn, without a shell, within limits, all output to a log; or RunError."""
    deadline_s = time.monotonic() + limits.time_s
    log.parent.mkdir(parents=True, exist_ok=True)
    for command in commands:
        with log.open('a') as stream:
            stream.write(f'$ {" ".join(command)}\n')
        process = SupervisedProcess(
            'the method', command, log, {**os.environ, **environment}, directory
        )
        try:
            _watch(process, deadline_s, limits.memory_bytes)
        finally:
            process.stop(_TERMINATE_S, (signal.SIGTERM, signal.SIGKILL))
        if process.poll() != 0:
            raise RunError(f'"{command[0]}" {process.reason()}')


def _watch(process: SupervisedProcess, deadline_s: float, memory_bytes: int) -> None:
    """Wait for the end; RunError at a limit."""
    while process.poll() is None:
        if process.memory_bytes > memory_bytes:
            raise RunError(
                f'the method used {process.memory_bytes / 2**30:.2f} GiB of memory, '
                f'{memory_bytes / 2**30:.2f} GiB are allowed; it was ended, {process.log_end()}'
            )
        if time.monotonic() > deadline_s:
            raise RunError(
                f'the method ran longer than allowed and was ended, {process.log_end()}'
            )
        process.wait(_POLL_S)


class TextEncoder(Strict):
    """The encoder of the text features that query the map, and the method's prompts."""

    model: str
    pretrained: str
    templates: tuple[str, ...]


class OfflineMethod(Strict):
    """A method that maps a recorded sequence.

    Parameters
    ----------
    name, importer, source : str
        Its name, the importer that reads its output, and where its code is.
    install : tuple of str
        Manual installation steps; none is run.
    variables : mapping of str to str
        Values that the user has to set, e.g. the path of the code, in the options of the mapper
        or as ``OSMABENCH_<NAME>_<VARIABLE>`` in the environment; name to explanation.
    sequence : SequenceFormat
        Its input format.
    origin : str
        'world' if its map is in the world of the poses that it reads; 'first_camera' if it finds
        its own poses, and begins at its first camera: x forward, z up.
    files : mapping of str to str
        Files that are written before it runs: name in the work folder to text.
    commands : tuple of tuple of str
        Run one after another, without a shell, in `directory`.
    environment : mapping of str to str
        Environment variables of the commands, added to the user's.
    directory : str
        Where the commands run.
    output : str
        The files that the importer reads.
    text_encoder : TextEncoder, optional
        Named in the report; None for a map without features.
    true_masks : str
        'conceptgraphs' if it reads the scene's masks as detections in the form of that method,
        which are written next to the sequence; '' if it detects objects itself.

    Notes
    -----
    Files and their names, commands, environment, directory and output may hold ``${...}``: the
    variables, and ``sequence``, ``dataset`` (its parent), ``scene``, ``output``, ``work``,
    ``seed``, ``frames``, ``width``, ``height``, ``pixels``, ``fx``, ``fy``, ``cx``, ``cy``,
    ``depth_scale``.
    """

    name: FolderName
    importer: str
    source: str
    install: tuple[str, ...]
    variables: dict[str, str] = Field(default_factory=dict)
    sequence: SequenceFormat
    origin: Literal['world', 'first_camera'] = 'world'
    files: dict[PathBelow, str] = Field(default_factory=dict)
    commands: tuple[tuple[str, ...], ...] = Field(min_length=1)
    environment: dict[str, str] = Field(default_factory=dict)
    directory: str = '${work}'
    output: str
    text_encoder: TextEncoder | None = None
    true_masks: Literal['', 'conceptgraphs'] = ''


def variables_of(method: OfflineMethod, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, of the options or else of the environment, or raise ConfigError."""
    found = dict(given)
    for name, meaning in method.variables.items():
        variable = f'OSMABENCH_{method.name}_{name}'.upper()
        found[name] = given.get(name) or os.environ.get(variable, '')
        if not found[name]:
            raise ConfigError(
                f'method "{method.name}" needs the variable "{name}": {meaning}; give it under '
                f'variables: in its options, or set {variable}'
            )
    return found


def load_method(name_or_path: str) -> OfflineMethod:
    """Load a method by its name in config/methods, or from a YAML file; may raise ConfigError."""
    data, source = described(name_or_path, 'methods')
    return validated(OfflineMethod, data, source)


def filled(value: Any, values: Mapping[str, str], where: str) -> Any:
    """Return a value with the ``${...}`` of its texts and keys replaced, at any depth.

    Raises ConfigError for unknown names; its message begins with `where`.
    """
    if isinstance(value, Mapping):
        return {
            filled(key, values, where): filled(item, values, f'{where}.{key}')
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [filled(item, values, f'{where}.{i}') for i, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    try:
        return Template(value).substitute(values)
    except KeyError as error:
        raise ConfigError(
            f'{where}: ${{{error.args[0]}}} is unknown. {suggestion(error.args[0], values)}'
        ) from error
    except ValueError as error:
        raise ConfigError(f'{where}: {error}; write $$ for a dollar sign') from error
