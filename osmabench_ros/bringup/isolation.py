"""Keeps runs on one machine from hearing each other, and the network from hearing any."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from osmabench_ros.configuration import config_path
from osmabench_ros.errors import RunError

FIRST_DOMAIN, LAST_DOMAIN = 20, 99
"""Domains whose ports lie below Linux's ephemeral ones; 0 to 19 are left to people."""


@contextmanager
def private_domain() -> Iterator[int]:
    """Yield a ROS domain that no other run on this machine has.

    Raises
    ------
    RunError
        If all are taken.
    """
    # Users of one machine hear each other too, so all of them share the locks.
    folder = Path(tempfile.gettempdir()) / 'osmabench-domains'
    if not folder.exists():
        folder.mkdir(exist_ok=True)
        folder.chmod(0o1777)
    for domain in range(FIRST_DOMAIN, LAST_DOMAIN + 1):
        path = folder / str(domain)
        if not path.exists():
            path.touch()
            path.chmod(0o666)
        with path.open('r') as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield domain
            return
    raise RunError(
        f'all ROS domains from {FIRST_DOMAIN} to {LAST_DOMAIN} are in use by runs; end one'
    )


TRANSPORT_VARIABLES = ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE')
"""Names by which the Fast DDS of Jazzy and of later distributions finds its transports."""


def transport_environment() -> Mapping[str, str]:
    """Return what lets Fast DDS carry images; nothing if the user chose transports already."""
    if any(name in os.environ for name in TRANSPORT_VARIABLES):
        return {}
    return dict.fromkeys(TRANSPORT_VARIABLES, str(config_path('fastdds.xml')))


def isolated_environment(domain: int) -> Mapping[str, str]:
    """Return the environment of a run's processes: own domain, this machine only."""
    return {
        **os.environ,
        **transport_environment(),
        'ROS_DOMAIN_ID': str(domain),
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        'PYTHONUNBUFFERED': '1',
        # A mapper's "python3" is the one that has ROS and this package.
        'PATH': f'{Path(sys.executable).parent}{os.pathsep}{os.environ.get("PATH", "")}',
    }
