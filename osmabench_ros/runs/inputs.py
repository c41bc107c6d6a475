"""Digests of everything outside a configuration that its results depend on."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.base.files import add_file
from osmabench_ros.runs.config import MapperConfig
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.scenes.scene import Scene

TEXT_FEATURES = 'text features of '
"""How names of such inputs begin."""
_PATHS = frozenset({'source', 'specification'})
"""Fields of a scene that say where it was found or what it was made by, not what it is."""


def collect_run_inputs(plan: RunPlan, scene_digest: str) -> dict[str, str]:
    """Return the digests of everything outside a configuration that a run depends on."""
    found = {
        **collect_shared_inputs(plan, scene_digest),
        **mapper_files(plan.mapper),
    }
    for name, file in plan.config.text_features.items():
        found |= _file(f'{TEXT_FEATURES}{name}', str(file))
    return found


def collect_shared_inputs(plan: RunPlan, scene_digest: str) -> dict[str, str]:
    """Return the digests of what all runs on a path in a scene depend on."""
    found = {scene_name(plan.identity.scene_key): scene_digest}
    for name, value in _list_strings(plan.config.simulator.options):
        found |= _file(f'simulator option {name}', value)
    recorded = plan.config.trajectory.recorded
    return found | (_file('trajectory', recorded) if recorded else {})


def scene_name(key: SceneKey) -> str:
    """Return the name of a scene among the inputs."""
    return f'scene {replace(key, path_seed=None)}'


def mapper_files(mapper: MapperConfig) -> dict[str, str]:
    """Return the digests of the files named by command, stack and options of a mapper."""
    options = (value for _, value in _list_strings(mapper.options))
    found: dict[str, str] = {}
    for text in (*mapper.command, mapper.stack, *mapper.variables.values(), *options):
        found |= _file(f'mapper {mapper.name}', text)
    return found


def scene_digest(scene: Scene) -> str:
    """Return the digest of a loaded scene: its meshes, textures, classes, rooms and lights."""
    digest = hashlib.sha256()
    _update(digest, scene)
    return digest.hexdigest()


def for_people(path: str | Path) -> str:
    """Return a path as it was written, the user's home shortened to ``~``."""
    text = str(path)
    if not text.startswith('/'):
        return text
    home = str(Path.home())
    return f'~{text[len(home) :]}' if text.startswith(f'{home}/') else text


def without_home(value: Any) -> Any:
    """Return plain data with the user's home in paths shortened to ``~``."""
    if isinstance(value, str):
        return for_people(value)
    if isinstance(value, Mapping):
        return {key: without_home(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_home(item) for item in value]
    return value


def _list_strings(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _list_strings(value)
        elif isinstance(value, str):
            yield name, value


def _file(kind: str, text: str) -> dict[str, str]:
    """Return the digest of a file if `text` is the path of one."""
    path = Path(text).expanduser()
    try:
        if not path.is_file():
            return {}
        status = path.stat()
    except OSError:
        return {}
    digest = _hash_file(path, status.st_size, status.st_mtime_ns)
    return {f'{kind}: {for_people(text)}': digest}


@lru_cache(maxsize=256)
def _hash_file(path: Path, size: int, mtime_ns: int) -> str:
    del size, mtime_ns  # part of the key: a file that changed is read again
    digest = hashlib.sha256()
    add_file(digest, path)
    return digest.hexdigest()


def _update(digest: hashlib._Hash, value: Any) -> None:
    """Feed a digest dataclasses, arrays and plain values, each with its kind and size."""
    if isinstance(value, np.ndarray):
        digest.update(f'array {value.dtype.str} {value.shape} '.encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        digest.update(f'{type(value).__name__} '.encode())
        for item in dataclasses.fields(value):
            if item.name not in _PATHS:
                _update(digest, getattr(value, item.name))
    elif isinstance(value, Mapping):
        digest.update(f'mapping {len(value)} '.encode())
        for key in sorted(value, key=str):
            _update(digest, (str(key), value[key]))
    elif isinstance(value, (tuple, list)):
        digest.update(f'sequence {len(value)} '.encode())
        for entry in value:
            _update(digest, entry)
    else:
        text = value.value if isinstance(value, Enum) else value
        digest.update(f'{type(text).__name__} {text!r} '.encode())
