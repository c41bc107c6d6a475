"""Version of the installed package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version


def version() -> str:
    """Return the version of the installed distribution, 'unknown' in a bare source tree."""
    try:
        return installed_version('osmabench_ros')
    except PackageNotFoundError:
        return 'unknown'
