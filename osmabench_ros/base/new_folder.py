"""Writes folders that appear complete or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from osmabench_ros.errors import MapError


@contextmanager
def new_folder(directory: Path) -> Iterator[Path]:
    """Yield a folder beside a directory that takes its name when the block ends without error.

    Raises
    ------
    MapError
        If the directory exists.
    """
    if directory.exists():
        raise MapError(f'{directory} exists; choose another directory or remove it')
    partial = directory.with_name(f'.{directory.name}.{os.getpid()}.partial')
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
