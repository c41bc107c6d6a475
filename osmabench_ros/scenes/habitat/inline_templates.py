"""Templates that a scene data set describes in its own configuration, under `configs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from osmabench_ros.errors import SceneError

Described = tuple[dict[str, Any], Path]
"""Attributes, and the folder that paths in them start from."""


def inline_templates(
    cells: Any, files: Mapping[str, Path], read: Callable[[Path | None], Described], where: str
) -> dict[str, Described]:
    """Return by handle the templates that a data set describes in `cells`, not in files.

    A cell has 'attributes', and 'original_file' (what it changes), 'template_handle' (its name) or
    both; `read` returns what a file describes, of None the defaults. Raises SceneError if a cell
    is malformed or changes a file that is not there.
    """
    found: dict[str, Described] = {}
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise SceneError(f'{where} must be a list of objects')
    for cell in cells:
        original, changes = str(cell.get('original_file', '')), cell.get('attributes', {})
        key = str(cell.get('template_handle', ''))
        source = None
        if original:
            source = next((k for k, path in files.items() if str(path).endswith(original)), None)
            if source is None:
                raise SceneError(f'{where} changes "{original}", which is not among the paths')
        if not (key or source) or not isinstance(changes, dict):
            raise SceneError(
                f'{where}: an entry needs "attributes", and an "original_file" or a '
                '"template_handle"'
            )
        base, folder = read(None if source is None else files[source])
        # Lights are added to those of the original, light by light.
        lights = {**base.get('lights', {}), **changes.get('lights', {})}
        merged = {**base, **changes, **({'lights': lights} if lights else {})}
        found[key or str(source)] = merged, folder
    return found
