"""Errors that a user can act on; each message names the cause and the remedy."""

import difflib
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LONGEST_MESSAGE = 4000
# As of a path that cannot be opened because it is too long.
_LONG_WORD = re.compile(r'(\S{150})\S+(\S{150})')


def make_printable(text: str) -> str:
    """Return a text that may quote a file, shortened and without control characters."""
    whole = _LONG_WORD.sub(lambda word: f'{word[1]}...{word[2]}', text)
    printable = ''.join(
        char if char.isprintable() or char == '\n' else ascii(char)[1:-1]
        for char in whole[:_LONGEST_MESSAGE]
    )
    rest = len(whole) - _LONGEST_MESSAGE
    return printable if rest <= 0 else f'{printable}... (and {rest} characters more)'


class OsmabenchError(Exception):
    """Base of every error this package raises on purpose.

    The command line prints the message without a traceback and exits with `exit_code`.
    """

    exit_code = 1
    # The log that says more, if one was written.
    log_file: Path | None = None

    def __str__(self) -> str:
        """Return the message, shortened and without control characters."""
        return make_printable(super().__str__())


class OsmabenchWarning(UserWarning):
    """The work goes on, but a result may mislead; names the cause and the remedy."""


def warn(text: str) -> None:
    """Warn that a result may mislead."""
    warnings.warn(text, OsmabenchWarning, stacklevel=3)


class ConfigError(OsmabenchError):
    """A configuration file, parameter or argument is wrong; names the file and key."""

    exit_code = 2


class MissingDependencyError(OsmabenchError):
    """An optional library or system package is not installed; names the extra to install."""

    exit_code = 3


class LimitError(OsmabenchError):
    """A file from outside takes more memory, time or depth than it may; names file and limit."""


class SceneError(OsmabenchError):
    """A scene or data set cannot be loaded; names the file and, if any, the object."""


class MissingFileError(SceneError):
    """A file that a scene names is nowhere it is looked for; others may be missing too."""


class SimulationError(OsmabenchError):
    """A simulator failed or was asked for something impossible, e.g. an unreachable goal."""


class SequenceError(OsmabenchError):
    """A recorded sequence or bag cannot be read or written; names the file and frame."""


class PointFileError(OsmabenchError):
    """A PLY or PCD file cannot be read or written; names the file."""


class MapError(OsmabenchError):
    """A semantic map is malformed; names the file and the offending element."""


class UnsafePickleError(MapError):
    """A pickle asks for something outside the allow-list; nothing of it was executed."""


class MetricError(OsmabenchError):
    """The input of a metric does not have the shape, range or labels it needs."""


class AlignmentError(MetricError):
    """Trajectories cannot be aligned, as on a straight line; what needs no alignment can be."""


class LanguageModelError(OsmabenchError):
    """A language model cannot be reached or keeps answering outside the schema.

    Parameters
    ----------
    message : str
        What happened.
    reason : str
        A short form that is equal for all requests with the same failure; the message if ''.
    """

    def __init__(self, message: str, *, reason: str = '') -> None:
        super().__init__(message)
        self.reason = reason or message


class IncompleteError(LanguageModelError):
    """A server failed, so that a stage cannot end; answers so far are kept, to resume from.

    Parameters
    ----------
    message : str
        How much is missing, and why.
    kept : sequence
        The results by question; missing ones are marked.
    """

    def __init__(self, message: str, kept: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.kept = tuple(kept)


class BudgetExceededError(LanguageModelError):
    """The token or cost budget is used up; everything answered so far is kept."""


class QuestionError(OsmabenchError):
    """A question or answer file is malformed; names the file and line."""


class ContractError(OsmabenchError):
    """A message breaks the topic contract; names the topic and the field."""


class ParticipantError(OsmabenchError):
    """A node of the run died, hung or never came; names the participant."""


class RunError(OsmabenchError):
    """A run or one of its stages failed; names the run and stage."""


class RequirementError(RunError):
    """The run completed, but a threshold under `requirements` does not hold."""

    exit_code = 4


def describe_error(error: BaseException) -> str:
    """Return the words of a library's error, with its kind if they say little without it."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    says_little = isinstance(error, (LookupError, TypeError)) or not str(error)
    return repr(error) if says_little else str(error)


@contextmanager
def errors_as(
    kind: type[OsmabenchError],
    what: str,
    *caught: type[Exception] | tuple[type[Exception], ...],
    remedy: str = '',
) -> Iterator[None]:
    """Turn the caught errors of a block into one `kind` of error that begins with `what`.

    `Exception` means whatever a library raises: not our own errors, nor a lack of memory.
    """
    try:
        yield
    except Exception as error:
        passed = (OsmabenchError, MemoryError) if Exception in caught else ()
        if not isinstance(error, caught) or isinstance(error, passed):
            raise
        tail = f'; {remedy}' if remedy else ''
        raise kind(f'{what}: {describe_error(error)}{tail}') from error


@contextmanager
def needing(purpose: str, remedy: str) -> Iterator[None]:
    """Turn a failed import in a block into an error that says what needs it, and the remedy."""
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(f'{purpose} ({error}); {remedy}') from error


def check_all(looks: Iterable[Callable[[], object]]) -> None:
    """Make every check, then raise the errors: one as it is, several as one."""
    errors: list[OsmabenchError] = []
    for look in looks:
        try:
            look()
        except OsmabenchError as error:
            errors.append(error)
    if len(errors) > 1:
        texts = dict.fromkeys(str(error).removesuffix('.') for error in errors)
        raise type(errors[0])('\n'.join(texts)) from errors[0]
    if errors:
        raise errors[0]


def suggestion(wrong: str, choices: Iterable[str]) -> str:
    """Return the tail of an error message: the nearest choice, and all of them.

    For example ``'Did you mean "camera"? Choose from: baseline, camera.'``
    """
    known = sorted(choices)
    near = difflib.get_close_matches(wrong, known, n=1)
    hint = f'Did you mean "{near[0]}"? ' if near else ''
    return f'{hint}Choose from: {", ".join(known) or "(nothing is registered)"}.'


def choose(name: str, among: Collection[str], kind: type[Exception], problem: str) -> str:
    """Return a name that is among some; else raise `kind` with the problem and a suggestion."""
    if name not in among:
        raise kind(f'{problem}. {suggestion(name, among)}')
    return name
