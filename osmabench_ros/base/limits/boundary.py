"""One error for whatever the content of a file from outside makes go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from osmabench_ros.errors import LimitError, OsmabenchError

_MAX_SHOWN = 200


@contextmanager
def naming_errors(source: Path | str, kind: type[OsmabenchError]) -> Iterator[None]:
    """Turn every error of a block that makes something of a file into one that names the file.

    Content may break any assumption of the code beyond its checks, and callers rely on one kind of
    error. Errors of this package pass; others become `kind`, a lack of memory a LimitError.
    """
    try:
        yield
    except OsmabenchError:
        raise
    except MemoryError as error:
        raise LimitError(f'{source} needs more memory than this machine has free') from error
    except Exception as error:
        name, reason = type(error).__name__, str(error)[:_MAX_SHOWN]
        raise kind(f'{str(source)[:_MAX_SHOWN]} is malformed: {name}: {reason}') from error
