"""Skips what this machine cannot run, with the reason."""

import importlib.util
import os
import subprocess
from pathlib import Path
from shutil import which

import pytest

from osmabench_ros.bringup.isolation import transport_environment
from osmabench_ros.bringup.shared_memory import FOLDER, SEGMENT_LOCK, remove_if_dead

# Nothing in the tests may reach or wait for the network.
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
# What tests do in their own process goes the way that nodes of a run go.
os.environ.update(transport_environment())


def _lacks_ros() -> str:
    if importlib.util.find_spec('rclpy') is None:
        return 'rclpy is not installed'
    if importlib.util.find_spec('osmabench_ros.msg') is None:
        return 'the messages are not built; make messages'
    return ''


def _lacks_gl() -> str:
    from osmabench_ros.errors import OsmabenchError
    from osmabench_ros.simulation.opengl.context import create_context

    try:
        create_context().release()
    except OsmabenchError as error:
        return str(error)
    return ''


def _lacks_browser() -> str:
    return '' if which('chromium') else 'chromium is not installed'


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for marker, look in (('ros', _lacks_ros), ('gl', _lacks_gl), ('browser', _lacks_browser)):
        marked = [item for item in items if item.get_closest_marker(marker)]
        reason = look() if marked else ''
        if reason:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=reason))


def _segment_locks() -> set[Path]:
    return {path for path in FOLDER.glob('fastrtps_*') if SEGMENT_LOCK.fullmatch(path.name)}


@pytest.fixture(scope='module', autouse=True)
def no_shared_memory_left() -> 'object':
    """Remove what killed processes of a module leave: whole runs fill /dev/shm with it."""
    before = _segment_locks()
    yield
    for lock_file in _segment_locks() - before:
        remove_if_dead(lock_file)


@pytest.fixture
def ros_domain() -> 'object':
    """A ROS domain that nothing else on this machine uses, nor any test just before."""
    from osmabench_ros.bringup.isolation import private_domain

    with private_domain() as domain:
        yield domain


@pytest.fixture
def ros_context(ros_domain: int) -> 'object':
    """An initialised rclpy context of the test's own, in a private domain."""
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=ros_domain, args=[])
    yield context
    context.try_shutdown()


@pytest.fixture(scope='session')
def fault_library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Path of a library that lets disk and clock of a process fail which preloads it."""
    compiler = which('cc')
    if compiler is None:
        pytest.skip('there is no cc to compile faults.c with')
    library = tmp_path_factory.mktemp('faults') / 'faults.so'
    source = Path(__file__).with_name('faults.c')
    made = subprocess.run(
        [compiler, '-shared', '-fPIC', '-o', str(library), str(source), '-ldl'],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f'faults.c needs Linux and glibc: {made.stderr.splitlines()[0]}')
    return str(library)
