"""Finds importers by the name of their method, through entry points."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from osmabench_ros.base.limits.boundary import naming_errors
from osmabench_ros.errors import MapError
from osmabench_ros.extensions import MAP_IMPORTERS, extension_names, load_extension
from osmabench_ros.maps.importer import ImportOptions, MapImporter
from osmabench_ros.maps.semantic_map import SemanticMap


def importer_names() -> list[str]:
    """Return the names of all importers that are installed, in alphabetical order."""
    return extension_names(MAP_IMPORTERS)


def find_importer(method: str) -> MapImporter:
    """Return the importer of a method; ConfigError if there is none, or it cannot be imported."""
    return cast('MapImporter', load_extension(MAP_IMPORTERS, method))


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
    with naming_errors(path, MapError):
        if not path.exists():
            raise MapError(f'{path} does not exist; give the file or folder that {method} wrote')
        return importer(path, options or ImportOptions())
