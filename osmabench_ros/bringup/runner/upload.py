"""Copies finished runs of a cluster to an address of fsspec, such as ``s3://bucket/runs``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.files import sha256_of
from osmabench_ros.errors import ConfigError, RunError, errors_as, needing

UPLOADED = 'uploaded.json'
"""The last file of an upload: the SHA-256 of every other; without it an upload is not whole."""


def check_address(url: str) -> None:
    """Raise ConfigError for an address that cannot be written to, or that holds a secret."""
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            '--upload holds a user, key or query; nodes take credentials from their environment'
        )
    _file_system(url)


def upload(folder: Path, url: str) -> None:
    """Copy a finished run, the list of digests last; an upload that is whole stays."""
    system, place = _file_system(url)
    names = {
        file.relative_to(folder).as_posix(): file
        for file in sorted(folder.rglob('*'))
        if file.is_file()
    }
    digests = {name: sha256_of(file) for name, file in names.items()}
    mark = f'{place}/{UPLOADED}'
    if system.exists(mark) and json.loads(system.cat_file(mark)) == digests:
        return
    for name, file in names.items():
        target = f'{place}/{name}'
        system.makedirs(target.rpartition('/')[0], exist_ok=True)
        system.put_file(str(file), target)
        if system.info(target)['size'] != file.stat().st_size:
            raise RunError(f'--upload: {target} has another size than {file}')
    system.pipe_file(mark, json.dumps(digests, indent=1).encode())


def _file_system(url: str) -> tuple[Any, str]:
    with needing('--upload needs fsspec', extra('cluster')):
        from fsspec.core import url_to_fs
    with errors_as(ConfigError, f'--upload {url}', ValueError, ImportError):
        system, place = url_to_fs(url)
    return system, str(place)
