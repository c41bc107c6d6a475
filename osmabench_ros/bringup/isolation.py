"""Keeps runs on one machine from hearing each other, and the network from hearing any."""

from __future__ import annotations

import fcntl
import os
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
    """Yield a ROS domain that no other run of this user on this machine has.

    Raises
    ------
    RunError
        If all are taken.
    """
    folder = Path(tempfile.gettempdir()) / f'osmabench-domains-{os.getuid()}'
    folder.mkdir(mode=0o700, exist_ok=True)
    for domain in range(FIRST_DOMAIN, LAST_DOMAIN + 1):
        with (folder / str(domain)).open('w') as file:
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
    }
