"""Who takes Ctrl-C over from Python, and when; each in a separate process."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('launch_ros', reason='source a ROS 2 installation')

LAUNCH = Path(__file__).parents[2] / 'launch'

IMPORTED = """
import signal
from osmabench_ros.bringup.launching import launch_nodes, launch_run
from osmabench_ros.bringup.launching.launch_arguments import describe_launch
from osmabench_ros.bringup.launching.launch_interrupts import interrupts
declared = describe_launch((), lambda *_: []).entities
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
from launch import LaunchContext
for _ in range(2):
    declared[0].visit(LaunchContext())
    print(signal.getsignal(signal.SIGINT) == interrupts.hear)
signal.raise_signal(signal.SIGINT)
"""

LOADED = """
import runpy, signal, sys
class Watch:
    def find_spec(self, name, path, target=None):
        if name == 'osmabench_ros.bringup.launching.launch_arguments':
            print(signal.getsignal(signal.SIGINT) is not signal.default_int_handler)
sys.meta_path.insert(0, Watch())
runpy.run_path(sys.argv[1])
"""


def printed(code, *arguments):
    command = [sys.executable, '-c', code, *arguments]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return process.stdout.split(), process.stderr


def test_the_handler_is_installed_by_a_description_and_not_by_an_import():
    lines, errors = printed(IMPORTED)
    assert lines == ['True', 'True', 'True'], errors
    # Outside of launch Python's own handler goes on working, however often it was taken over.
    assert 'KeyboardInterrupt' in errors
    assert 'RecursionError' not in errors


@pytest.mark.parametrize('name', ['full_run', 'on_robot'])
def test_a_file_that_owes_a_result_hears_ctrl_c_while_it_loads(name):
    lines, errors = printed(LOADED, str(LAUNCH / f'{name}.launch.py'))
    assert lines == ['True'], errors
