"""DualMap: one pickled object a file, with points, colours, a CLIP feature and a class id."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.base.documents import read_text
from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.assembly import Encoder, Method, SourceObject, assemble
from osmabench_ros.maps.importers.source_files import (
    colored_points,
    digest_of,
    read_json,
    unknown_data,
    vector,
)
from osmabench_ros.maps.pickles import CLASS, load_pickle
from osmabench_ros.maps.semantic_map import SemanticMap

METHOD = Method('dualmap', World.Z_UP, {'clip': Encoder('MobileCLIP-S2', 'datacompdr')})

_KNOWN = {CLASS, 'uid', 'pcd_points', 'pcd_colors', 'clip_ft', 'class_id', 'nav_goal'}


def import_map(path: Path, options: ImportOptions) -> SemanticMap:
    """Read a DualMap map.

    `path` is a folder with one `<uuid>.pkl` an object, and `class_names.json` (a list, or an
    object of id to name) or `class_names.txt` (one a line), copied from the file that DualMap's
    configuration names, if class ids are to get their names. The default world is z up.
    """
    files = sorted(path.glob('*.pkl')) if path.is_dir() else []
    if not files:
        raise MapError(f'{path} has no DualMap map; expected a folder with <uuid>.pkl files')
    names, name_file = _class_names(path)
    states = {file.stem: _state(file) for file in files}
    objects = [_object(file, states[file.stem], names) for file in files]
    unknown = unknown_data(states, _KNOWN)
    used = [*files, *([name_file] if name_file else [])]
    extras = {'objects': unknown} if unknown else {}
    return assemble(METHOD, options, objects, source_sha256=digest_of(used, path), extras=extras)


def _class_names(path: Path) -> tuple[Mapping[int, str], Path | None]:
    text, data = path / 'class_names.txt', path / 'class_names.json'
    if text.is_file():
        return dict(enumerate(read_text(text, MapError).splitlines())), text
    if not data.is_file():
        return {}, None
    listed = read_json(data)
    if isinstance(listed, list):
        return {i: str(name) for i, name in enumerate(listed)}, data
    try:
        return {int(key): str(name) for key, name in listed.items()}, data
    except (AttributeError, ValueError) as error:
        raise MapError(f'{data} holds neither a list nor ids with names') from error


def _state(file: Path) -> Mapping[str, Any]:
    state = load_pickle(file)
    if not isinstance(state, Mapping) or 'pcd_points' not in state:
        raise MapError(f'{file} holds no DualMap object: it has no "pcd_points"')
    return state


def _object(file: Path, state: Mapping[str, Any], names: Mapping[int, str]) -> SourceObject:
    points, colors = colored_points(state, 'pcd_points', 'pcd_colors', str(file))
    uid = state.get('uid')
    made = SourceObject(
        str(uid) if isinstance(uid, uuid.UUID | str) else file.stem,
        points=points,
        colors=colors,
        labels=_labels(state.get('class_id'), names),
        attributes={'navigation_goal': True} if state.get('nav_goal') is True else {},
    )
    class_id = state.get('class_id')
    if isinstance(class_id, int):
        made.attributes['source_class_id'] = float(class_id)
    feature = vector(state, 'clip_ft', str(file))
    if feature is not None and np.any(feature):
        made.features['clip'] = feature
    return made


def _labels(class_id: Any, names: Mapping[int, str]) -> list[tuple[str, float]]:
    name = names.get(class_id) if isinstance(class_id, int) else None
    return [(name, float('nan'))] if name else []
