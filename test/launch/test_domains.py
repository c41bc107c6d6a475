"""Two launches on one machine under the real ros2 launch: refused, or beside each other."""

import json

import pytest
from support.ros2_launch import SMALL, finished, full_run, interrupted, ros2_launch
from support.waiting import read_until

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def first(tmp_path, ros_domain):
    """A launch that plays its frames all the time."""
    process = ros2_launch(
        'bridge.launch.py', 'pacing:=realtime', 'goals:=2', *SMALL[1:],
        domain=ros_domain, logs=tmp_path / 'first',
    )  # fmt: skip
    read_until(process, 'frames from')
    yield process
    assert process.poll() is None, 'the second launch has ended the first'
    said = interrupted(process)
    assert process.returncode == 0, said
    assert 'Traceback' not in said


@pytest.mark.usefixtures('first')
def test_a_second_launch_with_a_node_of_the_first_is_refused_before_it_starts_any(
    tmp_path, ros_domain
):
    process = full_run(tmp_path / 'second', *SMALL, domain=ros_domain)
    text = finished(process, 1, 60.0)
    assert f'ROS domain {ros_domain} has /simulator_bridge of another launch' in text
    for remedy in ('ROS_DOMAIN_ID', 'namespace:=', 'domain:=auto'):
        assert remedy in text
    assert 'planning the path' not in text
    assert 'process started' not in text


@pytest.mark.usefixtures('first')
@pytest.mark.parametrize('apart', ['namespace:=second', 'domain:=auto'])
def test_two_launches_that_are_kept_apart_both_work(apart, tmp_path, ros_domain):
    process = full_run(tmp_path / 'second', *SMALL, apart, domain=ros_domain)
    text = finished(process, 0)
    [report] = (tmp_path / 'second').glob('*/report.json')
    assert json.loads(report.read_text())['passed'] is True
    assert ('is the domain of this launch' in text) == (apart == 'domain:=auto')


def test_of_two_full_runs_at_once_one_is_refused_and_one_ends_with_a_report(tmp_path, ros_domain):
    runs = [full_run(tmp_path / name, *SMALL, domain=ros_domain) for name in 'ab']
    texts = [finished(process) for process in runs]
    assert sorted(process.returncode for process in runs) == [0, 1], texts
    assert len(list(tmp_path.glob('*/*/report.json'))) == 1


@pytest.mark.parametrize('domain', ['1000', '-1', 'any'])
def test_what_is_no_domain_is_refused(domain, tmp_path, ros_domain):
    process = full_run(tmp_path, *SMALL, f'domain:={domain}', domain=ros_domain)
    text = finished(process, 1, 60.0)
    assert f'domain:={domain} must be a number' in text
    assert 'process started' not in text
