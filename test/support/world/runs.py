"""Runs small enough to be run many times, and scenes prepared for them once for all tests."""

import fcntl
import json
import shutil
import sys
from hashlib import sha256
from pathlib import Path

from osmabench_ros.base.files import MARKER
from osmabench_ros.base.log import LOG_FILE
from support import SUPPORT

FOREIGN_MAPPER = SUPPORT / 'foreign_mapper.py'


def small_config(**changes):
    """Return the data of a configuration: five small frames, only geometry."""
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


def matrix_config(**parts):
    """Return the smallest configuration with some parts."""
    from osmabench_ros.runs.config import parse_config

    smallest = {
        'name': 'own', 'mappers': [{'name': 'oracle'}], 'suites': [{'name': 'map_geometry'}],
    }  # fmt: skip
    return parse_config({**smallest, **parts}, 'test')


def plans_of(config, root, dataset='d', scene='s'):
    """Return the plans of a configuration; the name of a scene may hold its seed, as {seed}."""
    from osmabench_ros.runs.identity import SceneKey
    from osmabench_ros.runs.plan import plan_runs

    keys = {
        item: SceneKey(dataset, scene.format(seed=item.seed), item.seed, item.path_seed)
        for item in config.seeded_scenes
    }
    return plan_runs(config, keys, root)


def run_small(data, out, *, prepared=None, **options):
    """Run the matrix of a configuration below a folder; return its report."""
    from osmabench_ros.base.progress import silent
    from osmabench_ros.bringup.runner.matrix_runner import run_matrix
    from osmabench_ros.runs.config import parse_config

    if prepared:
        prepared.put_into(out, data)
    return run_matrix(parse_config(data, 'test'), out, **{'progress': silent, **options})


def foreign(mischief, **options):
    """Return a mapper entry that starts the misbehaving node."""
    command = [sys.executable, str(FOREIGN_MAPPER), mischief]
    return {'name': f'foreign_{mischief}', 'command': command, **options}


def repeatable(root):
    """Return the files of a matrix that a seed must repeat byte by byte."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob('*'))
        if path.is_file()
        and path.name not in (MARKER, 'timings.json', 'report.html', LOG_FILE)
        and 'logs' not in path.parts
    }


# Parts of a configuration that the preparation of scenes does not depend on.
PARTS_OF_RUNS = {
    'name', 'mappers', 'conditions', 'suites', 'pacing', 'requirements', 'recording', 'evaluation',
}  # fmt: skip


class PreparedScenes:
    """Folders of results as runs leave them that were cut off after their preparation."""

    def __init__(self, folder):
        self._folder = folder

    def put_into(self, out, data):
        """Make the folder of a matrix below `out`, prepared for a configuration; return it."""
        from osmabench_ros.base.progress import silent
        from osmabench_ros.runs.config import parse_config
        from osmabench_ros.runs.preparation import Preparation

        config = parse_config(data, 'test')
        rest = config.model_dump(mode='json', exclude=PARTS_OF_RUNS)
        key = sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
        root = self._folder / key
        with (self._folder / f'{key}.lock').open('w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not root.exists():
                Preparation().prepare_all(config, root, silent)
        return Path(shutil.copytree(root, out / config.name))
