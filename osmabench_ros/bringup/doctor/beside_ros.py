"""The Python packages that rosdep does not install: requirements/beside_ros.txt."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.requirements import Requirement

from osmabench_ros.base.configuration import shared_path

SAME = {'open3d': 'open3d-cpu'}
"""Distributions by the name of another that holds the same modules."""


def requirements_file() -> Path:
    """Return the file that the README gives to pip."""
    return shared_path('requirements', 'beside_ros.txt')


def requirements() -> list[Requirement]:
    """Return the requirements in the file."""
    lines = requirements_file().read_text('utf-8').splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith('#')]


def unmet_requirements() -> list[str]:
    """Return descriptions of the requirements that are missing here, or too old."""
    found = [(item, _installed(item.name)) for item in requirements()]
    return [
        f'{item} ({version_here or "not installed"})'
        for item, version_here in found
        if not (version_here and item.specifier.contains(version_here, prereleases=True))
    ]


def _installed(name: str) -> str | None:
    for candidate in (name, SAME.get(name, name)):
        try:
            return version(candidate)
        except PackageNotFoundError:
            continue
    return None
