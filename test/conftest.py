"""Skips what this machine cannot run, with the reason, and shares tests out to workers."""

import contextlib
import fcntl
import functools
import importlib.util
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from shutil import which

import pytest
from hypothesis import settings
from support import SUPPORT
from support.waiting import Spinner
from support.world.runs import PreparedScenes

from osmabench_ros.bringup.isolation import (
    FOLDER,
    SEGMENT_LOCK,
    remove_if_dead,
    transport_environment,
)

# Nothing in the tests may reach or wait for the network.
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
# What tests do in their own process goes the way that nodes of a run go.
os.environ.update(transport_environment())
# A shell that starts a job in the background makes it ignore Ctrl-C, and so all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The same examples every time: what fails once fails again. No test may take a certain time.
settings.register_profile('repeatable', derandomize=True, deadline=None)
settings.load_profile('repeatable')

FOLDER_OF_TESTS = Path(__file__).parent
# Folders of tests that import ROS.
OF_ROS = ('ros', 'nodes')

LONGEST_ID = 40
FOREIGN_SEGMENTS = pytest.StashKey[set[Path]]()
# A lock file of Fast DDS that is younger may not be locked yet, though its process lives.
YOUNG_S = 10.0


def pytest_make_parametrize_id(val):
    """Shorten long values, which would fill the output of a failure."""
    long = isinstance(val, str | bytes) and len(val) > LONGEST_ID
    return f'{val[:LONGEST_ID]!r:.40}, of {len(val)}' if long else None  # type: ignore[index]


@functools.cache
def _lacks_ros():
    if importlib.util.find_spec('rclpy') is None:
        return 'rclpy is not installed'
    if importlib.util.find_spec('osmabench_ros.msg') is None:
        return 'the messages are not built; make messages'
    return ''


class WithoutRos(pytest.Module):
    """A module that cannot be imported here."""

    def collect(self):
        pytest.skip(_lacks_ros(), allow_module_level=True)


def pytest_pycollect_makemodule(module_path, parent):
    if module_path.parent.name in OF_ROS and _lacks_ros():
        return WithoutRos.from_parent(parent, path=module_path)
    return None


def _lacks_gl():
    from osmabench_ros.errors import OsmabenchError
    from osmabench_ros.simulation.opengl.textures import create_context

    try:
        create_context().release()
    except OsmabenchError as error:
        return str(error)
    return ''


def _lacks_browser():
    return '' if which('chromium') else 'chromium is not installed'


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return how many workers `-n auto` is: whole runs wait for DDS and for their processes."""
    return len(os.sched_getaffinity(0)) * 3 // 2 + 1


# The first, so that no time limit of a test counts while it waits.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Run a test marked "alone" while the other workers run none."""
    if 'PYTEST_XDIST_WORKER' not in os.environ:
        return (yield)
    folder = item.config._tmp_path_factory.getbasetemp().parent
    how = fcntl.LOCK_EX if _needs_the_machine(item) else fcntl.LOCK_SH
    with (folder / 'next.lock').open('w') as entry, (folder / 'tests.lock').open('w') as running:
        fcntl.flock(entry, how)  # none begins before one that waits for the machine
        fcntl.flock(running, how)
        fcntl.flock(entry, fcntl.LOCK_UN)
        try:
            return (yield)
        finally:
            fcntl.flock(running, fcntl.LOCK_UN)  # a forked child may still have the file


def _needs_the_machine(item):
    return item.get_closest_marker('alone') is not None


# A wrapper, so that xdist reads the groups afterwards.
@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.path.parent.name in OF_ROS:
            item.add_marker('ros')
    for marker, look in (('ros', _lacks_ros), ('gl', _lacks_gl), ('browser', _lacks_browser)):
        marked = [item for item in items if item.get_closest_marker(marker)]
        reason = look() if marked else ''
        if reason:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))
    slow = {item.path for item in items if item.get_closest_marker('slow')}
    # Slow ones first, so that none is left for the end; those that need the machine, last.
    items.sort(key=lambda item: (_needs_the_machine(item), item.path not in slow))
    for item in items:
        if item.get_closest_marker('xdist_group') is None and not _stands_alone(item):
            module = item.path.relative_to(FOLDER_OF_TESTS)
            # Tests of reports share a matrix, which takes long to make.
            group = module.parts[0] if module.parts[0] == 'reports' else str(module)
            item.add_marker(pytest.mark.xdist_group(group))
    yield
    grouped = [item for item in items if item.get_closest_marker('xdist_group')]
    # It writes the group behind the name, which not every pytest lets it do.
    if getattr(config.option, 'loadgroup', False) and not all('@' in i.nodeid for i in grouped):
        raise pytest.UsageError(
            f'pytest-xdist cannot group tests with pytest {pytest.__version__}, and each '
            'worker would make the fixtures of a module; install requirements/development.txt'
        )


def _stands_alone(item):
    """Return whether a test is slow and shares nothing that is made once for its module."""
    shared = (
        fixture
        for name in item.fixturenames
        for fixture in item._fixtureinfo.name2fixturedefs.get(name, ())
    )
    return item.get_closest_marker('slow') is not None and not any(
        fixture.scope == 'module' and fixture.argname != no_shared_memory_left.__name__
        for fixture in shared
    )


def _segment_locks():
    return {path for path in FOLDER.glob('fastrtps_*') if SEGMENT_LOCK.fullmatch(path.name)}


def pytest_configure(config):
    config.stash[FOREIGN_SEGMENTS] = _segment_locks()


# Once the workers have ended.
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if not hasattr(session.config, 'workerinput'):
        _remove_segments(session.config, unlocked_s=0.0)


@pytest.fixture(scope='module', autouse=True)
def no_shared_memory_left(pytestconfig):
    """Remove what killed processes leave: whole runs fill /dev/shm with it."""
    yield
    _remove_segments(pytestconfig, unlocked_s=YOUNG_S)


def _remove_segments(config, unlocked_s):
    """Remove segments of dead processes: living ones, of any worker, lock their segments."""
    for lock_file in _segment_locks() - config.stash[FOREIGN_SEGMENTS]:
        with contextlib.suppress(FileNotFoundError):  # another worker was first
            if time.time() - lock_file.stat().st_mtime >= unlocked_s:
                remove_if_dead(lock_file)


@pytest.fixture
def write_file(tmp_path):
    """What writes a text, bytes, or other data as JSON into a file of the test, and returns it."""

    def write(name, content):
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def ros_domain():
    """A ROS domain that nothing else on this machine uses, nor any test just before."""
    from osmabench_ros.bringup.isolation import private_domain

    with private_domain() as domain:
        yield domain


@pytest.fixture
def ros_context(ros_domain):
    """An initialised rclpy context of the test's own, in a private domain."""
    from support.ros_processes import context_in

    with context_in(ros_domain) as context:
        yield context


@pytest.fixture
def spinner(ros_context):
    """What makes nodes in a private domain, spins them while it waits, and destroys them."""
    with contextlib.closing(Spinner(ros_context)) as made:
        yield made


@pytest.fixture(scope='session')
def for_all_workers(tmp_path_factory):
    """A folder of this session that its workers share; who writes into it keeps the others out."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if os.environ.get('PYTEST_XDIST_WORKER') else folder


@pytest.fixture(scope='session')
def prepared(for_all_workers):
    """Scenes for runs that do not test their own preparation, which takes half of their time."""
    folder = for_all_workers / 'prepared'
    folder.mkdir(exist_ok=True)
    return PreparedScenes(folder)


@pytest.fixture(scope='session')
def nodes():
    """What starts the nodes of runs, one host for all: its imports take seconds."""
    from osmabench_ros.bringup.runner.node_processes import NodeProcesses

    with contextlib.closing(NodeProcesses()) as processes:
        yield processes


@pytest.fixture(scope='session')
def fault_library(tmp_path_factory):
    """Path of a library that lets disk and clock of a process fail which preloads it."""
    compiler = which('cc')
    if compiler is None:
        pytest.skip('there is no cc to compile faults.c with')
    library = tmp_path_factory.mktemp('faults') / 'faults.so'
    source = SUPPORT / 'faults.c'
    made = subprocess.run(
        [compiler, '-shared', '-fPIC', '-o', str(library), str(source), '-ldl'],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f'faults.c needs Linux and glibc: {made.stderr.splitlines()[0]}')
    return str(library)
