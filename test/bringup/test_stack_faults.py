"""`doctor --stack` finds every single fault of a stack that is there or that comes later."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.ros_processes import process

pytestmark = [pytest.mark.ros, pytest.mark.slow, pytest.mark.alone, pytest.mark.full]
pytest.importorskip('rclpy')

from osmabench_ros.bringup import stack_observation
from osmabench_ros.bringup.examination import StackNames, examine_stack
from osmabench_ros.bringup.isolation import private_domain
from osmabench_ros.bringup.preflight import Severity

BENCHMARKS = Path(__file__).resolve().parents[2] / 'benchmarks'
# No longer than that: benchmarks/metrics.py would hide test/metrics.
with pytest.MonkeyPatch.context() as path:
    path.syspath_prepend(BENCHMARKS)
    from stack_faults import FAULTS

TIMES = {'early': '0', 'late': str(stack_observation.DISCOVERY_S + 0.2)}


def look(domain):
    return examine_stack(StackNames(), seconds=8.0, domain=domain)  # a busy machine is slow


@pytest.fixture(scope='module', params=TIMES)
def findings(request):
    """Findings of all stacks at once, each in a separate domain."""
    with ExitStack() as stack:
        domains = {name: stack.enter_context(private_domain()) for name in ('none', *FAULTS)}
        pairs = [f'{name}={domain}' for name, domain in domains.items()]
        program = str(BENCHMARKS / 'faulty_stacks.py')
        running = process(0, program, '--after', TIMES[request.param], *pairs)
        stacks = stack.enter_context(running)
        assert stacks.stdout.readline().strip() == 'ready'
        if request.param == 'early':
            assert {stacks.stdout.readline().strip() for _ in domains} == set(domains)
        # A busy machine may need longer until they come.
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(
            stack_observation, 'PATIENCE_S', 60.0
        )
        with ThreadPoolExecutor(len(domains)) as pool:
            found = dict(zip(domains, pool.map(look, domains.values()), strict=True))
        stacks.terminate()
        stacks.wait(60)
        yield found


@pytest.mark.parametrize('fault', ['none', *FAULTS])
def test_every_fault_is_found_however_late_it_comes(fault, findings):
    bad = [item for item in findings[fault] if item.level in (Severity.FAILED, Severity.WARN)]
    if fault == 'none':
        # A busy machine may lose messages; nothing else may be said.
        assert [item for item in bad if 'Hz' not in item.detail] == []
        return
    part, words = FAULTS[fault]
    assert any(
        item.level is Severity.FAILED and item.part == part and words in item.detail
        for item in bad
    ), bad
