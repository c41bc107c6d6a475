"""Runs communicate only on this machine, as their sockets show from outside."""

import os
import socket
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from support.fault_runs import own_mounts
from support.programs import run_program, run_python
from support.ros_processes import process
from support.waiting import wait_until

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from osmabench_ros.bringup import isolation

linux = pytest.mark.skipif(sys.platform != 'linux', reason='reads /proc/net/udp, which is Linux')

NODE = 'import rclpy; rclpy.init(); rclpy.spin(rclpy.create_node("any"))'
PARTICIPANTS = """
import os, sys
from pathlib import Path
from osmabench_ros.bringup.isolation import make_isolated_environment
from osmabench_ros.bringup.isolation import segment_bytes
segment = segment_bytes()
os.environ.update(make_isolated_environment(int(sys.argv[2])))
import rclpy
from rclpy.context import Context
nodes = []
for _ in range(int(sys.argv[1])):
    context = Context()
    context.init()
    nodes.append(rclpy.create_node('any', context=context))
print(sum(item.stat().st_size >= segment for item in Path('/dev/shm').glob('fastrtps_*')))
"""
IN_64_MB = 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$@"'
# Unicast discovery of a domain's first participant, by the rules of DDSI-RTPS.
METATRAFFIC_PORT, PORTS_PER_DOMAIN = 7400 + 10, 250


@pytest.fixture
def plain_shell(monkeypatch):
    for name in (
        *isolation.TRANSPORT_VARIABLES,
        isolation.RANGE_VARIABLE,
        *isolation.FAR_VARIABLES,
    ):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_an_environment_lasts_as_long_as_its_block(plain_shell):
    plain_shell.setenv('PATH', '/usr/bin')
    plain_shell.setenv('ROS_DOMAIN_ID', '7')
    before = dict(os.environ)
    with isolation.environment(isolation.make_isolated_environment(33)):
        assert os.environ['ROS_DOMAIN_ID'] == '33'
        assert os.environ[isolation.RANGE_VARIABLE] == 'LOCALHOST'
    assert dict(os.environ) == before

    with pytest.raises(KeyboardInterrupt), isolation.environment({'ROS_DOMAIN_ID': '33'}):
        raise KeyboardInterrupt
    assert dict(os.environ) == before


@pytest.fixture
def node(plain_shell, ros_domain):
    """A node with the environment of a run."""
    with process(ros_domain, '-c', NODE) as running:
        watched = psutil.Process(running.pid)
        wait_until(
            lambda: any(is_discovery(item.laddr.port, ros_domain) for item in udp(watched)),
            state=lambda: 'the node opened no socket for discovery',
        )
        time.sleep(0.5)
        yield watched


def udp(process):
    return process.net_connections('udp')


def is_discovery(port, domain):
    first = METATRAFFIC_PORT + PORTS_PER_DOMAIN * domain
    return first <= port < first + 240


def unread_bytes(port):
    """Return the number of unread bytes in the UDP sockets of a port."""
    lines = Path('/proc/net/udp').read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(int(f[4].split(':')[1], 16) for f in fields if int(f[1].split(':')[1], 16) == port)


@linux
def test_nothing_is_read_from_beyond_this_machine(node):
    sockets = udp(node)
    assert all(item.laddr.ip.startswith('127.') for item in sockets if read_by_fast_dds(item))
    assert any(item.laddr.ip.startswith('127.') for item in sockets)
    assert not [item for item in node.net_connections('tcp') if item.status == 'LISTEN']
    multicast = Path(f'/proc/{node.pid}/net/igmp').read_text().split()
    assert '0100FFEF' not in multicast, '239.255.0.1, the group of discovery, is joined'


def read_by_fast_dds(item):
    """Find sockets that are only used to send: data sent to them is never read."""
    ip, port = item.laddr
    before = unread_bytes(port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b'osmabench', ('127.0.0.1' if ip == '0.0.0.0' else ip, port))
    time.sleep(0.2)
    return unread_bytes(port) == before


@linux
def test_the_look_at_sockets_tells_readers_from_senders():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as idle:
        idle.bind(('127.0.0.1', 0))
        own, name = udp(psutil.Process()), idle.getsockname()
        [mine] = [item for item in own if tuple(item.laddr or ()) == name]
        assert not read_by_fast_dds(mine)
        assert unread_bytes(mine.laddr.port) > 0
        idle.recv(100)
        assert unread_bytes(mine.laddr.port) == 0


def test_a_run_ignores_what_leads_to_other_machines(plain_shell):
    plain_shell.setenv('ROS_STATIC_PEERS', '192.0.2.1')
    plain_shell.setenv('ROS_DISCOVERY_SERVER', '192.0.2.1:11811')
    plain_shell.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET')
    found = isolation.make_isolated_environment(42)
    assert (found['ROS_STATIC_PEERS'], found['ROS_DISCOVERY_SERVER']) == ('', '')
    assert found['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
    assert found[isolation.TRANSPORT_VARIABLES[0]].endswith('fastdds_localhost.xml')


def test_launch_files_stay_on_this_machine_unless_asked(plain_shell):
    found = isolation.launch_environment()
    assert found['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
    assert found[isolation.TRANSPORT_VARIABLES[0]].endswith('fastdds_localhost.xml')
    plain_shell.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET')
    found = isolation.launch_environment()
    assert found['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'SUBNET'
    assert found[isolation.TRANSPORT_VARIABLES[0]].endswith('fastdds.xml')


@pytest.mark.parametrize('name', isolation.TRANSPORT_VARIABLES)
def test_a_profile_of_the_users_own_is_kept(name, plain_shell):
    plain_shell.setenv(name, '/etc/mine.xml')
    assert isolation.transport_environment() == {}
    assert isolation.make_isolated_environment(42)[name] == '/etc/mine.xml'
    assert os.environ[name] == '/etc/mine.xml'


def test_a_domain_is_not_taken_again_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, 'gettempdir', lambda: str(tmp_path))
    monkeypatch.setattr(isolation, 'CLAIM', f'\0osmabench-test-{os.getpid()}-{{}}')
    monkeypatch.setattr(isolation, 'LAST_DOMAIN', isolation.FIRST_DOMAIN + 2)
    taken = []
    for _ in range(9):
        with isolation.private_domain() as domain:
            taken.append(domain)
        time.sleep(0.01)  # by which the times of files differ
    assert taken == [20, 21, 22] * 3


KILLED_OWNER = """
import os
from osmabench_ros.bringup import isolation
isolation.LAST_DOMAIN = isolation.FIRST_DOMAIN + 2
isolation.CLAIM = {claim!r}
with isolation.private_domain() as domain:
    print(domain, flush=True)
    os._exit(1)
"""


def test_the_domain_of_a_killed_run_is_not_taken_next(tmp_path):
    script = KILLED_OWNER.format(claim=f'\0osmabench-test-{os.getpid()}-{{}}')
    variables = {'TMPDIR': str(tmp_path)}
    taken = [run_python('-c', script, variables=variables).stdout for _ in range(4)]
    assert taken == ['20\n', '21\n', '22\n', '20\n']


@linux
def test_every_process_of_a_run_gets_shared_memory_of_the_64_mb_of_a_container(
    plain_shell, ros_domain
):
    inside = ['sh', '-c', IN_64_MB, 'sh', sys.executable, '-c', PARTICIPANTS]
    done = run_program(*own_mounts(), *inside, isolation.PROCESSES, ros_domain, timeout=60)
    assert (done.returncode, done.stdout) == (0, f'{isolation.PROCESSES}\n'), done.stderr


def test_runs_side_by_side_share_the_shared_memory(monkeypatch):
    monkeypatch.setattr(isolation, 'free_bytes', lambda: 2**26)
    alone, one_of_four = isolation.segment_bytes(), isolation.segment_bytes(4)
    taken = isolation.PROCESSES * 4 * (one_of_four + isolation.PORT_BYTES)
    assert (alone, taken) == (7 * 2**20, 2**26)


ANOTHER_DOMAIN = """
from osmabench_ros.bringup import isolation
isolation.FIRST_DOMAIN = isolation.LAST_DOMAIN = {domain}
with isolation.private_domain():
    pass
"""


def test_domains_differ_even_where_folders_of_locks_do(tmp_path):
    with isolation.private_domain() as domain:
        script = ANOTHER_DOMAIN.format(domain=domain)
        done = run_python('-c', script, variables={'TMPDIR': str(tmp_path)})
    assert f'all ROS domains from {domain} to {domain} are in use' in done.stderr
