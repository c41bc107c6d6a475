"""A run small enough to be run many times."""

import sys
from pathlib import Path
from typing import Any

from osmabench_ros.base.owned_folder import MARKER

FOREIGN_MAPPER = Path(__file__).with_name('foreign_mapper.py')


def small_config(**changes: Any) -> dict[str, Any]:
    """Return the data of a configuration: five small frames, geometry alone."""
    return {
        'name': 'small',
        'scenes': [{'reference': 'apartment', 'seed': 3}],
        'mappers': [{'name': 'oracle'}],
        'camera': {'width': 64, 'height': 48},
        'trajectory': {'goals': 2, 'frame_rate_hz': 1.0, 'max_frames': 5},
        'pacing': {'ack_timeout_s': 4.0, 'match_timeout_s': 30.0},
        'suites': [{'name': 'map_geometry'}],
        **changes,
    }


def foreign(mischief: str, **options: Any) -> dict[str, Any]:
    """Return a mapper entry that starts the misbehaving node."""
    command = [sys.executable, str(FOREIGN_MAPPER), mischief]
    return {'name': f'foreign_{mischief}', 'command': command, **options}


def repeatable(root: Path) -> dict[str, bytes]:
    """Return the files of a matrix that a seed must repeat byte by byte."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob('*'))
        if path.is_file()
        and path.name not in (MARKER, 'timings.json', 'report.html')
        and 'logs' not in path.parts
    }
