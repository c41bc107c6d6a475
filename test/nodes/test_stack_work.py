"""Which processes beside an adapter count as the stack whose map it publishes."""

import subprocess
import sys
import textwrap

import pytest

ADAPTER = textwrap.dedent(
    """
    import time
    from osmabench_ros.nodes.map_adapter.map_settling import SAMPLE_EVERY_S, StackWork

    work, busy = StackWork(), False
    for step in range(4):
        busy = work.busy(float(step))
        time.sleep(SAMPLE_EVERY_S)
    print(busy)
    """
)
RUNNER = """
import subprocess, sys
busy = subprocess.Popen([sys.executable, '-c', 'while True: pass', *sys.argv[2:]])
subprocess.run([sys.executable, '-c', sys.argv[1], 'osmabench_ros.nodes.map_adapter_node'])
busy.kill()
"""


@pytest.mark.parametrize(
    ('program', 'is_stack'),
    [
        ('my_mapper', True),
        ('osmabench_ros.nodes.evaluator_node', False),
        ('/opt/ros/lib/osmabench_ros/evaluator_node', False),
    ],
)
def test_nodes_of_the_benchmark_are_no_work_of_the_stack(program: str, is_stack: bool) -> None:
    command = [sys.executable, '-c', RUNNER, ADAPTER, program]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert shown.strip() == str(is_stack)


def test_every_node_of_a_run_is_started_as_one_of_the_benchmark(tmp_path) -> None:
    from osmabench_ros.bringup.spec.node_spec import NodeSpec
    from osmabench_ros.nodes.map_adapter.map_settling import _OWN_NODE

    command = NodeSpec('evaluator', 'evaluator_node').command_line(tmp_path)
    assert any(map(_OWN_NODE.search, command))
