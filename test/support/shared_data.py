"""Data that lies beside the repository on a developer's machine and is never part of it."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / 'shared'


def shared_path(*parts: str) -> Path:
    """Return a path below the shared folder, or skip the test that asked."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f'needs {"/".join(("shared", *parts))} beside the repository')
    return path
