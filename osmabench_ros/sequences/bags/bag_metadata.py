"""The files of a bag in order, and metadata.yaml of rosbag2, versions 1 to 9."""

from __future__ import annotations

import os
from pathlib import Path

from osmabench_ros.base.documents import read_yaml
from osmabench_ros.errors import OsmabenchError, SequenceError, errors_as
from osmabench_ros.sequences.bags.bag_storage import ZSTD_SUFFIX

METADATA_FILE = 'metadata.yaml'
ROOT = 'rosbag2_bagfile_information'
LAST_OF_HUMBLE = 5


def read_metadata(folder: Path) -> tuple[list[str], str]:
    """Return the file names of a bag, and its distribution, before version 8 guessed by version.

    Raises SequenceError if metadata.yaml is missing or malformed.
    """
    path = folder / METADATA_FILE
    if not path.exists():
        raise SequenceError(f'{METADATA_FILE} is missing')
    content = read_yaml(path, SequenceError)
    caught = (TypeError, ValueError, KeyError, AttributeError)
    with errors_as(SequenceError, f'{METADATA_FILE} is malformed', *caught):
        content = content[ROOT]
        # Before version 4 the paths began with the name of the folder; none may lead out of it.
        names = [Path(name).name for name in content['relative_file_paths']]
        old = int(content.get('version') or 9) <= LAST_OF_HUMBLE
        return names, str(content.get('ros_distro') or ('humble' if old else 'iron'))


SUFFIXES = ('.mcap', '.db3')
# Where a folder that also holds other files keeps its bag.
INNER_FOLDER = 'bag'


def is_bag(path: Path) -> bool:
    """Return whether a path looks like a bag or a file of one."""
    try:
        files_of(path)
    except SequenceError:
        return False
    return True


def files_of(path: Path) -> tuple[list[Path], str, list[str]]:
    """Return a bag's files in order, its distribution and damage; SequenceError if no bag."""
    if os.path.isfile(path):
        if not _is_bag_file(path):
            raise SequenceError(
                f'{path} is not a bag file; name a folder of a bag, or an .mcap or .db3 file'
            )
        return [path], '', []
    folder = path if _bag_files(path) else path / INNER_FOLDER
    present = _bag_files(folder)
    if not os.path.exists(path):
        raise SequenceError(f'{path} does not exist; name a folder of a bag, or one of its files')
    if not present:
        raise SequenceError(
            f'{path} is not a bag: there is no .mcap or .db3 file in it; name a folder of a bag, '
            'or one of its files'
        )
    try:
        names, distribution = read_metadata(folder)
    except OsmabenchError as error:
        return present, '', [str(error)]
    named = [folder / name for name in names]
    # A recorder that is killed has not written down its last file.
    files = [file for file in named if file in present]
    files += [file for file in present if file not in named]
    return files, distribution, [f'{file.name} is missing' for file in named if file not in files]


def _bag_files(folder: Path) -> list[Path]:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [folder / name for name in names if _is_bag_file(folder / name)]
    # name_2.mcap comes before name_10.mcap.
    return sorted(filter(os.path.isfile, found), key=lambda file: (len(file.name), file.name))


def _is_bag_file(path: Path) -> bool:
    return path.name.removesuffix(ZSTD_SUFFIX).endswith(SUFFIXES)
