"""What runs of a scene share, prepared once for all tests and workers that do not test that."""

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

ASIDE = (
    'name', 'mappers', 'conditions', 'suites', 'pacing', 'requirements', 'recording', 'evaluation',
)  # fmt: skip
"""Parts of a configuration that what is prepared does not depend on."""


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Keep other workers out while the block lasts."""
    with lock.open('w') as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class PreparedScenes:
    """Folders of results as runs leave them that were cut off after their preparation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put_into(self, out: Path, data: dict[str, Any]) -> Path:
        """Make the folder of a matrix below `out`, prepared for a configuration; return it."""
        from osmabench_ros.base.progress import silent
        from osmabench_ros.runs.config import parse_config
        from osmabench_ros.runs.prepare.preparation import Preparation

        config = parse_config(data, 'test')
        rest = config.model_dump(mode='json', exclude=set(ASIDE))
        key = sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
        root = self._folder / key
        with alone(self._folder / f'{key}.lock'):
            if not root.exists():
                Preparation().prepare_all(config, root, silent)
        return Path(shutil.copytree(root, out / config.name))
