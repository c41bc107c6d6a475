"""Finds importers by the name of their method, through entry points."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from osmabench_ros.errors import ConfigError, MapError, suggestion
from osmabench_ros.maps.importer import ImportOptions, MapImporter
from osmabench_ros.maps.semantic_map import SemanticMap

GROUP = 'osmabench.map_importers'
"""Entry-point group of importers."""


def importer_names() -> list[str]:
    """Return the names of all importers that are installed, in alphabetical order."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def find_importer(method: str) -> MapImporter:
    """Return the importer of a method.

    Raises
    ------
    ConfigError
        If there is none, or it cannot be imported.
    """
    found = {point.name: point for point in entry_points(group=GROUP)}
    if method not in found:
        raise ConfigError(f'there is no importer for "{method}". {suggestion(method, found)}')
    try:
        return cast('MapImporter', found[method].load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f'importer "{method}" cannot be loaded from "{found[method].value}": {error}; '
            'reinstall the package that provides it'
        ) from error


def import_map(method: str, path: Path, options: ImportOptions | None = None) -> SemanticMap:
    """Read what a mapping method left behind.

    Parameters
    ----------
    method : str
        Name of an importer, e.g. ``'conceptgraphs'``.
    path : Path
        File or folder of the method.
    options : ImportOptions, optional
        What the files do not say themselves.

    Returns
    -------
    SemanticMap
        z up, metres.

    Raises
    ------
    ConfigError
        If there is no such importer.
    MapError
        If the files are missing or malformed; names them.
    """
    importer = find_importer(method)
    if not path.exists():
        raise MapError(f'{path} does not exist; give the file or folder that {method} wrote')
    return importer(path, options or ImportOptions())
