"""Semantic maps on disk: a folder with map.json, cloud.ply, .npy arrays and extras, no pickles."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from osmabench_ros.base.files import filled_folder
from osmabench_ros.base.limits.boundary import naming_errors
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.ply import write_ply
from osmabench_ros.maps.array_files import write_npy
from osmabench_ros.maps.fault import Fault
from osmabench_ros.maps.raw_map import RawMap, raw_map_of, semantic_map_of
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.validation import CLOUD, DOCUMENT, EXTRAS, faults_of_raw, load_raw

Writer = Callable[[IO[bytes]], None]


def write_map(semantic_map: SemanticMap, directory: Path) -> None:
    """Write a map; equal maps give byte-identical files.

    Parameters
    ----------
    semantic_map : SemanticMap
        Checked first, nothing is written if it has faults.
    directory : Path
        Must not exist, or be empty; its parents are made. The map appears whole.

    Raises
    ------
    MapError
        If the map has faults; the message lists the first ones.
    RunError
        If there is something in the directory.
    """
    with filled_folder(directory) as folder:
        for name, write in files_of(semantic_map):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open('wb') as stream:
                write(stream)


def read_map(directory: Path) -> SemanticMap:
    """Read a map from its folder, fully checked; MapError lists the first faults."""
    raw, faults = load_raw(directory)
    _refuse(faults, str(directory))
    assert raw is not None
    with naming_errors(directory / DOCUMENT, MapError):
        return semantic_map_of(raw, str(directory / DOCUMENT))


def files_of(semantic_map: SemanticMap) -> Iterator[tuple[str, Writer]]:
    """Return name and writer of every file, always in the same order; MapError for faults."""
    raw = raw_map_of(semantic_map)
    _refuse(faults_of_raw(raw), 'the map cannot be written')
    return _writers(raw)


def _writers(raw: RawMap) -> Iterator[tuple[str, Writer]]:
    yield DOCUMENT, partial(_write_json, raw.document)
    if raw.cloud is not None:
        yield CLOUD, partial(write_ply, columns=raw.cloud)
    for name in sorted(raw.arrays):
        yield name, partial(write_npy, array=raw.arrays[name])
    if raw.extras:
        yield EXTRAS, partial(_write_json, raw.extras)


def _write_json(data: dict[str, Any], stream: IO[bytes]) -> None:
    text = io.TextIOWrapper(stream, 'utf-8', newline='\n', write_through=True)
    try:
        json.dump(data, text, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise MapError(f'the extras of the map are no JSON: {error}') from error
    finally:
        text.detach()


def _refuse(faults: list[Fault], what: str) -> None:
    if faults:
        shown = '\n'.join(f'  {fault}' for fault in faults[:10])
        more = f'\n  and {len(faults) - 10} more' if len(faults) > 10 else ''
        raise MapError(f'{what}: {len(faults)} fault(s)\n{shown}{more}')
