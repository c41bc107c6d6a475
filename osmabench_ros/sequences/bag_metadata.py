"""metadata.yaml of rosbag2, versions 1 to 9."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

METADATA_FILE = 'metadata.yaml'
ROOT = 'rosbag2_bagfile_information'
MAX_METADATA_BYTES = 64 * 2**20


@dataclass(frozen=True)
class BagMetadata:
    """What is read of it; all else is in the files themselves.

    Parameters
    ----------
    files : tuple of str
        Names inside the folder, in the order of recording.
    distribution : str
        Such as ``humble``; before version 8, which introduced it, guessed by the version.
    fault : str
        Why metadata.yaml cannot be used, empty if it can.
    """

    files: tuple[str, ...] = ()
    distribution: str = ''
    fault: str = ''


def read_metadata(folder: Path) -> BagMetadata:
    """Read the metadata of a bag; one that is missing or damaged is no error, but a fault."""
    path = folder / METADATA_FILE
    try:
        if path.stat().st_size > MAX_METADATA_BYTES:
            return BagMetadata(fault=f'{METADATA_FILE} is larger than {MAX_METADATA_BYTES} bytes')
        document = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        return BagMetadata(fault=f'{METADATA_FILE} is missing')
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return BagMetadata(fault=f'{METADATA_FILE} cannot be read: {error}')
    content = document.get(ROOT) if isinstance(document, Mapping) else None
    if not isinstance(content, Mapping):
        return BagMetadata(fault=f'{METADATA_FILE} holds no "{ROOT}"')
    names = content.get('relative_file_paths')
    if not isinstance(names, list):
        return BagMetadata(fault=f'{METADATA_FILE} names no files')
    # Before version 4 the paths began with the name of the folder; none may lead out of it.
    files = tuple(Path(str(name)).name for name in names)
    return BagMetadata(files, _distribution(content))


def _distribution(content: Mapping[str, Any]) -> str:
    named = str(content.get('ros_distro') or '')
    if named:
        return named
    version = content.get('version')
    return 'humble' if isinstance(version, int) and version <= 5 else 'iron'
