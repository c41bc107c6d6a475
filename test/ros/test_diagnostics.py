"""Nodes report their health in every state of their lifecycle, whatever the simulated time."""

import time
from contextlib import closing

import psutil
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from support.waiting import Spinner, listen

from osmabench_ros.base import contract as topics
from osmabench_ros.base.strict import Strict
from osmabench_ros.ros.node.diagnostics import Health, Level, values_of
from osmabench_ros.ros.node.lifecycle import BenchmarkNode


class Patient(BenchmarkNode):
    """Says how it is."""

    def __init__(self):
        super().__init__('patient', Strict)
        self.says = Health()

    def health(self):
        return self.says


@pytest.fixture
def heard(ros_domain):
    arguments = ['--ros-args', '-r', '__ns:=/ward', '-p', 'use_sim_time:=true']
    rclpy.init(args=arguments, domain_id=ros_domain)
    with closing(Spinner()) as spinner:
        patient, doctor = spinner.add(Patient()), spinner.make_node('doctor')
        arrays = listen(doctor, DiagnosticArray, topics.DIAGNOSTICS, 10)

        def next_array():
            count = len(arrays)
            spinner.spin_until(lambda: len(arrays) > count)
            return arrays[-1]

        yield patient, next_array
    rclpy.shutdown()


def test_health_reaches_an_aggregator(heard):
    patient, next_array = heard
    first = next_array().status[0]
    assert (first.name, first.level) == ('ward/patient: status', DiagnosticStatus.OK)
    assert first.hardware_id
    patient.trigger_configure()
    patient.trigger_cleanup()
    patient.says = Health(Level.WARN, 'a cold', {'temperature_c': 38.25, 'cough': 'dry'})
    array = next_array()
    assert (array.status[0].level, array.status[0].message) == (DiagnosticStatus.WARN, 'a cold')
    values = values_of(array, 'patient')
    assert (values['temperature_c'], values['cough']) == ('38.25', 'dry')
    assert 10 * 2**20 < int(values['memory_bytes']) <= psutil.virtual_memory().total
    assert values_of(array, 'doctor') == {}


def test_the_rate_is_one_a_second(heard):
    _, next_array = heard
    next_array()
    start = time.monotonic()
    next_array()
    next_array()
    assert 1.5 < time.monotonic() - start < 10.0
