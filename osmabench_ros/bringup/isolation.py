"""Isolates runs on one machine from each other and from the network, and claims nodes."""

import contextlib
import fcntl
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from osmabench_ros.base.configuration import config_path
from osmabench_ros.base.files import sha256_of_data
from osmabench_ros.errors import RunError

FOLDER = Path('/dev/shm')  # noqa: S108 - where Linux keeps POSIX shared memory
# Of a process, where there is enough: images of several megabytes on their way at once.
SEGMENT_BYTES = 32 * 2**20

# What Fast DDS takes unasked.
SMALLEST_SEGMENT_BYTES = 2**19

# Most processes of a run, and bytes that Fast DDS takes for each on top of the segment.
PROCESSES, PORT_BYTES = 8, 2**20

# Names by which config/fastdds_localhost.xml reads the sizes.
SEGMENT_VARIABLE, MESSAGE_VARIABLE = 'OSMABENCH_SEGMENT_BYTES', 'OSMABENCH_MESSAGE_BYTES'

# What Fast DDS calls the file that the process of a segment keeps locked.
SEGMENT_LOCK = re.compile('fastrtps_[0-9a-f]{16}_el')


def free_bytes() -> int | None:
    """Return the free shared memory in bytes; None if no folder limits it."""
    if not FOLDER.is_dir():
        return None
    return shutil.disk_usage(FOLDER).free if os.access(FOLDER, os.W_OK) else 0


def segment_bytes(runs_at_once: int = 1) -> int:
    """Return the size of the segment that Fast DDS reserves; a container has 64 MB for all."""
    free = free_bytes()
    if free is None:
        return SEGMENT_BYTES
    share = free // (PROCESSES * runs_at_once) - PORT_BYTES
    return min(max(share, SMALLEST_SEGMENT_BYTES), SEGMENT_BYTES)


def find_segment_locks(processes: Iterable[psutil.Process]) -> set[Path]:
    """Return the lock files of the segments of running processes.

    Fast DDS leaves segments behind if a process is killed.
    """
    found: set[Path] = set()
    for process in processes:
        with contextlib.suppress(psutil.Error):
            found |= {Path(item.path) for item in process.open_files()}
    return {file for file in found if file.parent == FOLDER and SEGMENT_LOCK.fullmatch(file.name)}


def remove_if_dead(lock_file: Path) -> None:
    """Remove a segment and its lock file unless a process holds the lock."""
    with contextlib.suppress(OSError), lock_file.open('rb') as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock_file.with_name(lock_file.name.removesuffix('_el')).unlink(missing_ok=True)
        lock_file.unlink()


# Domains with ports below Linux's ephemeral ones; 0 to 19 are left to people.
FIRST_DOMAIN, LAST_DOMAIN = 20, 99

CLAIM = '\0osmabench-{}'


def claim(name: str) -> socket.socket | None:
    """Claim a name on this machine until the socket is closed; None if another process has it.

    All that share the ports of DDS see an abstract socket, whatever their user and folders are.
    """
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(CLAIM.format(name))
    except OSError:
        holder.close()
        return None
    return holder


@contextmanager
def private_domain() -> Iterator[int]:
    """Yield a ROS domain that no other run here has, the one unused for longest; or RunError."""
    folder = Path(tempfile.gettempdir()) / 'osmabench-domains'
    files = [folder / str(domain) for domain in range(FIRST_DOMAIN, LAST_DOMAIN + 1)]
    for file in sorted(files, key=lambda item: item.stat().st_mtime_ns if item.exists() else 0):
        holder = claim(f'domain-{file.name}')
        if holder is None:
            continue
        with holder:
            _note_use(file)  # nodes of a run that is killed may go on for a while
            try:
                yield int(file.name)
            finally:
                _note_use(file)
        return
    raise RunError(
        f'all ROS domains from {FIRST_DOMAIN} to {LAST_DOMAIN} are in use by runs; end one'
    )


def _note_use(file: Path) -> None:
    with contextlib.suppress(OSError):  # it is of another user
        if not file.parent.exists():
            file.parent.mkdir()
            file.parent.chmod(0o1777)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        os.utime(handle)
        os.close(handle)


# Names by which the Fast DDS of Jazzy and of later distributions finds its transports.
TRANSPORT_VARIABLES = ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE')

RANGE_VARIABLE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
LOCALHOST = 'LOCALHOST'

# Variables of a shell that would lead a run to other machines.
FAR_VARIABLES = ('ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER')


def transport_environment(
    discovery_range: str | None = None, runs_at_once: int = 1
) -> Mapping[str, str]:
    """Return the variables by which Fast DDS carries images; none if the user set transports.

    The range is by default the one of this shell. It decides only which nodes are found: Fast DDS
    listens on every interface all the same, unless a profile says otherwise, as for LOCALHOST.
    """
    if any(os.environ.get(name) for name in TRANSPORT_VARIABLES):
        return {}
    local = (discovery_range or os.environ.get(RANGE_VARIABLE)) == LOCALHOST
    profile = config_path('fastdds_localhost.xml' if local else 'fastdds.xml')
    variables = dict.fromkeys(TRANSPORT_VARIABLES, str(profile))
    if local:
        size = segment_bytes(runs_at_once)
        variables |= {SEGMENT_VARIABLE: str(size), MESSAGE_VARIABLE: str(size // 2)}
    return variables


def launch_environment() -> Mapping[str, str]:
    """Return the environment of launched nodes: this machine only, unless the shell says more."""
    discovery_range = os.environ.get(RANGE_VARIABLE) or LOCALHOST
    return {RANGE_VARIABLE: discovery_range, **transport_environment(discovery_range)}


def make_isolated_environment(domain: int, runs_at_once: int = 1) -> Mapping[str, str]:
    """Return the environment of a run's processes: own ROS domain, this machine only."""
    return {
        **os.environ,
        **transport_environment(LOCALHOST, runs_at_once),
        **dict.fromkeys(FAR_VARIABLES, ''),
        'ROS_DOMAIN_ID': str(domain),
        RANGE_VARIABLE: LOCALHOST,
        'PYTHONUNBUFFERED': '1',
        # A mapper's "python3" is the one that has ROS and this package.
        'PATH': f'{Path(sys.executable).parent}{os.pathsep}{os.environ.get("PATH", "")}',
    }


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables of this process during the block; restores them afterwards."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables.keys() - before.keys():
            del os.environ[name]
        os.environ.update({name: before[name] for name in variables.keys() & before.keys()})


# How long to look for nodes that have no lock: of other users, machines and containers.
LOOK_S = 1.0
LOOK_PERIOD_S = 0.1


def full_name(namespace: str, name: str) -> str:
    """Return the name of a node with its namespace."""
    return '/' + '/'.join([*filter(None, namespace.split('/')), name])


# Nodes that no other process may start, by domain and full name.
Claims = dict[tuple[int, str], socket.socket]


def claim_nodes(held: Claims, domain: int, names: Sequence[str]) -> list[str]:
    """Add nodes to those that are held; return which of them other processes have.

    Claims come first, because the graph is late.
    """
    new = [name for name in names if (domain, name) not in held]
    # The path of a socket has 107 letters at most.
    claims = {name: claim(f'node-{sha256_of_data([domain, name])}') for name in new}
    held |= {(domain, name): holder for name, holder in claims.items() if holder is not None}
    others = [name for name, holder in claims.items() if holder is None]
    return others or (_find_on_graph(domain, new) if new else [])


def _find_on_graph(domain: int, names: Sequence[str]) -> list[str]:
    """Return which of the given nodes are in a domain."""
    from osmabench_ros.ros.matched_client import command_node

    found: set[str] = set()
    with command_node(f'osmabench_look_{os.getpid()}', domain=domain) as (node, _):
        deadline = time.monotonic() + LOOK_S
        while not found and time.monotonic() < deadline:
            time.sleep(LOOK_PERIOD_S)
            present = node.get_node_names_and_namespaces()
            found = {full_name(space, name) for name, space in present} & set(names)
    return sorted(found)
