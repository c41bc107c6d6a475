import pytest

from osmabench_ros.reports.cells import format_plain
from osmabench_ros.reports.tidy import NOT_APPLICABLE


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
