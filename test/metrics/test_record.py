import math

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from osmabench_ros.base.device import resolve_device, to_tensor
from osmabench_ros.errors import ConfigError
from osmabench_ros.metrics.record import COLUMNS, MetricRecord

RECORDS = TypeAdapter(list[MetricRecord])


@pytest.mark.parametrize('mode', ['strict', ''])
def test_records_survive_json_with_their_run(mode):
    record = MetricRecord('s', mode, 'macc', 'chair', 0.5, 0.4, 0.6, 12, run_id='x', path_seed=3)
    [found] = RECORDS.dump_python([record], mode='json')
    assert list(found) == list(COLUMNS)
    assert (found['run_id'], found['mode']) == ('x', mode or None)
    assert RECORDS.validate_python([found]) == [record]


def test_what_does_not_exist_is_null_and_not_applicable():
    record = MetricRecord('s', '', 'macc', value=math.nan, low=math.inf, n=3)
    assert record.value is None
    assert record.low is None
    assert not record.applicable
    assert record == MetricRecord(**record.to_json())
    assert not MetricRecord.not_applicable('s', '', 'x', higher_is_better=False).applicable


def test_numpy_figures_become_plain_ones():
    record = MetricRecord('s', '', 'm', value=np.float32(0.5), n=np.int64(3))
    assert type(record.value) is float
    assert type(record.n) is int


@pytest.mark.parametrize(
    'changes',
    [{'value': '0.5'}, {'value': math.inf}, {'n': True}, {'mode': 1}, {'class': 'chair'}],
)
def test_malformed_records_are_refused(changes):
    with pytest.raises(ValidationError):
        RECORDS.validate_python([{**MetricRecord('s', '', 'm', value=0.5).to_json(), **changes}])
    with pytest.raises(ValidationError, match='metric'):
        RECORDS.validate_python([{'suite': 's', 'mode': None}])


def test_devices_that_do_not_exist_are_refused():
    with pytest.raises(ConfigError, match='device "gpu" is unknown'):
        resolve_device('gpu')
    with pytest.raises(ConfigError, match='device "mps" will not do here; use auto, cuda or cpu'):
        resolve_device('mps')
    assert resolve_device('cpu').type == 'cpu'


def test_tensors_keep_values_of_unsigned_and_reversed_arrays():
    assert to_tensor(np.array([65535], np.uint16)).tolist() == [65535]
    assert to_tensor(np.arange(3)[::-1]).tolist() == [2, 1, 0]
