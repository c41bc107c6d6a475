import pytest

from osmabench_ros.metrics.message_timing import Staleness
from osmabench_ros.reports.cells import ABSENT, format_plain, make_field_cells
from osmabench_ros.reports.tidy import NOT_APPLICABLE
from osmabench_ros.runs.sweep import SweepPoint
from osmabench_ros.runs.timings import Measurements, Participation


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (None, NOT_APPLICABLE),
        (0.123456, '0.1235'),
        (10755.0, '10755'),
        (123456.7, '123457'),
        (1234.5, '1234'),
        (2.0, '2'),
        (0.000565, '0.000565'),
        (6.534e-16, '0'),
        (-3.6e-31, '0'),
        (1e20, '1e+20'),
        (float('inf'), 'inf'),
        (float('nan'), NOT_APPLICABLE),
    ],
)
def test_figures_are_shown_as_people_write_them(value, text):
    assert format_plain(value) == text


def test_the_costs_of_a_run_have_the_memory_of_its_mapper():
    memory, gpu_memory = {'mapper': 3 << 20, 'evaluator': 5}, {'mapper': 7 << 20}
    run = Measurements('lockstep', 60, 'mapper', 1.5, (), memory, None, None, gpu_memory)
    texts = [cell.text for cell in make_field_cells(run, 'costs')]
    assert texts == ['60', '1.5', NOT_APPLICABLE, NOT_APPLICABLE, '3', '7']


def test_every_column_is_a_field_of_its_rows():
    run = Measurements('lockstep', 60, 'mapper')
    rows = {
        'costs': run,
        'speed': run,
        'frames': Participation('mapper', 60),
        'latency': Participation('mapper', 60),
        'staleness': Staleness(1.5, 4.0, 0.25, 3),
        'sweep': SweepPoint(run_id='run', speed_factor=2.0),
    }
    for table, item in rows.items():
        assert len(make_field_cells(item, table)) == len(make_field_cells(None, table))
    with pytest.raises(AttributeError, match='maps'):
        make_field_cells(run, 'staleness')
    assert set(make_field_cells(None, 'staleness')) == {ABSENT}
