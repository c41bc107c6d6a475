"""Keeps runs on one machine from hearing each other, and the network from hearing any."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from osmabench_ros.bringup.shared_memory import segment_environment
from osmabench_ros.configuration import config_path
from osmabench_ros.errors import RunError

FIRST_DOMAIN, LAST_DOMAIN = 20, 99
"""Domains whose ports lie below Linux's ephemeral ones; 0 to 19 are left to people."""


@contextmanager
def private_domain() -> Iterator[int]:
    """Yield a ROS domain that no other run on this machine has; raises RunError if all are taken.

    Of the free ones it is the one that was unused for longest: DDS holds a process that was killed
    for present until its lease ends, and a run should not meet such ghosts.
    """
    folder = lock_folder()
    locks = [folder / str(domain) for domain in range(FIRST_DOMAIN, LAST_DOMAIN + 1)]
    for path in sorted(locks, key=_last_used_ns):
        handle = lock(path)
        if handle is None:
            continue
        try:
            yield int(path.name)
        finally:
            _note_use(handle, locks)
            os.close(handle)
        return
    raise RunError(
        f'all ROS domains from {FIRST_DOMAIN} to {LAST_DOMAIN} are in use by runs; end one'
    )


def lock_folder() -> Path:
    """Return the folder of locks; users of one machine hear each other, so all share it."""
    folder = Path(tempfile.gettempdir()) / 'osmabench-domains'
    if not folder.exists():
        folder.mkdir(exist_ok=True)
        folder.chmod(0o1777)
    return folder


def lock(path: Path) -> int | None:
    """Return a descriptor of a lock, None if it is held or cannot be opened; follows no link."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError:
        return None
    try:
        with contextlib.suppress(PermissionError):  # it is of another user, and was made so
            os.fchmod(handle, 0o666)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _note_use(handle: int, locks: Iterable[Path]) -> None:
    """Let a lock be the last one used, also if the system clock was set back since another was."""
    os.utime(handle)
    newest_ns = max(map(_last_used_ns, locks))
    if os.fstat(handle).st_mtime_ns < newest_ns:
        with contextlib.suppress(PermissionError):  # it is of another user
            os.utime(handle, ns=(newest_ns + 1, newest_ns + 1))


def _last_used_ns(lock: Path) -> int:
    return lock.stat().st_mtime_ns if lock.exists() else 0


TRANSPORT_VARIABLES = ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE')
"""Names by which the Fast DDS of Jazzy and of later distributions finds its transports."""

RANGE_VARIABLE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
LOCALHOST = 'LOCALHOST'

FAR_VARIABLES = ('ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER')
"""Variables of a shell that would lead a run to other machines."""


def transport_environment(discovery_range: str | None = None) -> Mapping[str, str]:
    """Return what lets Fast DDS carry images; nothing if the user chose transports already.

    The range is by default that of this shell. It alone decides who is found: Fast DDS listens on
    every interface all the same, unless a profile says otherwise, so LOCALHOST gets one that does.
    """
    if any(os.environ.get(name) for name in TRANSPORT_VARIABLES):
        return {}
    local = (discovery_range or os.environ.get(RANGE_VARIABLE)) == LOCALHOST
    profile = config_path('fastdds_localhost.xml' if local else 'fastdds.xml')
    return {
        **dict.fromkeys(TRANSPORT_VARIABLES, str(profile)),
        **(segment_environment() if local else {}),
    }


def launch_environment() -> Mapping[str, str]:
    """Return what nodes of a launch file need: this machine only, unless the shell says more."""
    discovery_range = os.environ.get(RANGE_VARIABLE) or LOCALHOST
    return {RANGE_VARIABLE: discovery_range, **transport_environment(discovery_range)}


def isolated_environment(domain: int) -> Mapping[str, str]:
    """Return the environment of a run's processes: own domain, this machine only."""
    return {
        **os.environ,
        **transport_environment(LOCALHOST),
        **dict.fromkeys(FAR_VARIABLES, ''),
        'ROS_DOMAIN_ID': str(domain),
        RANGE_VARIABLE: LOCALHOST,
        'PYTHONUNBUFFERED': '1',
        # A mapper's "python3" is the one that has ROS and this package.
        'PATH': f'{Path(sys.executable).parent}{os.pathsep}{os.environ.get("PATH", "")}',
    }


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process while the block lasts; afterwards all are as before."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables.keys() - before.keys():
            del os.environ[name]
        os.environ.update({name: before[name] for name in variables.keys() & before.keys()})
