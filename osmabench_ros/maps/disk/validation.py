"""Finds all faults of a map on disk, with their places."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from pydantic import ValidationError

from osmabench_ros.base.limits.arrays import read_npy
from osmabench_ros.base.limits.documents import parse_json, read_json
from osmabench_ros.base.limits.reading import naming_errors, read_bytes
from osmabench_ros.base.strict import fault_text
from osmabench_ros.errors import MapError, OsmabenchError
from osmabench_ros.geometry.point_files import read_ply
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, read_tum
from osmabench_ros.maps.disk.document import MAX_FORM_FAULTS, MapDocument, TooManyFaultsError
from osmabench_ros.maps.disk.faults import Fault, faults_of_content
from osmabench_ros.maps.disk.raw_map import RawMap, array_names

DOCUMENT, CLOUD, EXTRAS = 'map.json', 'cloud.ply', 'extras/extras.json'
TRAJECTORY = 'trajectory.tum'


def faults_of_directory(directory: Path) -> list[Fault]:
    """Return every fault of a map directory; an empty list means that `read_map` accepts it."""
    return load_raw(directory)[1]


def faults_of_raw(raw: RawMap) -> list[Fault]:
    """Return every fault of a map that is about to be written."""
    try:
        text = json.dumps(raw.document, allow_nan=False)
    except (TypeError, ValueError) as error:
        return [Fault(DOCUMENT, '', f'cannot be written as JSON: {error}')]
    return _form_faults(text) or list(faults_of_content(raw))


def load_raw(directory: Path) -> tuple[RawMap | None, list[Fault]]:
    """Read an untrusted map directory; return the map (None if unreadable) and all its faults."""
    try:
        with naming_errors(directory, MapError):
            return _load_raw(directory)
    except OsmabenchError as error:
        return None, [Fault('', '', str(error))]


def _load_raw(directory: Path) -> tuple[RawMap | None, list[Fault]]:
    if not directory.is_dir():
        return None, [Fault(str(directory), '', 'is no folder; give the folder with map.json')]
    if not (directory / DOCUMENT).is_file():
        return None, [Fault(DOCUMENT, '', f'does not exist in {directory}; is it a map?')]
    try:
        text = read_bytes(directory / DOCUMENT, MapError)
        document = parse_json(text, directory / DOCUMENT, MapError)
    except OsmabenchError as error:
        return None, [Fault(DOCUMENT, '', str(error))]
    faults = _form_faults(text)
    if faults:
        return None, faults
    arrays: dict[str, NDArray[Any]] = {}
    for name in array_names(document):
        try:
            arrays[name] = read_npy(directory / name, MapError)
        except OsmabenchError as error:
            faults.append(Fault(name, '', str(error)))
    raw = RawMap(
        document,
        arrays,
        _cloud(directory, document, faults),
        _extras(directory, faults),
        _trajectory(directory / TRAJECTORY, faults),
    )
    return raw, [*faults, *faults_of_content(raw)]


def _form_faults(text: str | bytes) -> list[Fault]:
    counted: dict[str, int] = {}
    try:
        MapDocument.model_validate_json(text, context=counted)
    except TooManyFaultsError:
        return [Fault(DOCUMENT, '', f'has more than {MAX_FORM_FAULTS} faults; is it a map?')]
    except ValidationError as error:
        return [Fault(DOCUMENT, _place(item['loc']), fault_text(item)) for item in error.errors()]
    return []


def _place(location: tuple[int | str, ...]) -> str:
    text = ''
    for key in location:
        text += f'[{key}]' if isinstance(key, int) else f'.{key}'
    return text.removeprefix('.')


def _cloud(
    directory: Path, document: dict[str, Any], faults: list[Fault]
) -> dict[str, NDArray[Any]] | None:
    if not document.get('dense'):
        return None
    if not (directory / CLOUD).is_file():
        faults.append(Fault(CLOUD, '', 'does not exist, though map.json has a dense part'))
        return None
    try:
        return read_ply(directory / CLOUD)
    except OsmabenchError as error:
        faults.append(Fault(CLOUD, '', str(error)))
        return None


def _extras(directory: Path, faults: list[Fault]) -> dict[str, Any]:
    path = directory / EXTRAS
    if not path.is_file():
        return {}
    try:
        extras = read_json(path, MapError)
    except OsmabenchError as error:
        faults.append(Fault(EXTRAS, '', str(error)))
        return {}
    if not isinstance(extras, dict):
        faults.append(Fault(EXTRAS, '', f'must hold an object, not a {type(extras).__name__}'))
        return {}
    return extras


def _trajectory(path: Path, faults: list[Fault]) -> StampedTrajectory | None:
    if not path.is_file():
        return None
    try:
        return read_tum(path)
    except OsmabenchError as error:
        faults.append(Fault(TRAJECTORY, '', str(error)))
        return None
