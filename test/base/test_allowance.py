import pytest

from osmabench_ros.base.limits.allowance import (
    VARIABLE,
    Allowance,
    allowance,
    exceeded,
    limited_to,
    parse_allowance,
)
from osmabench_ros.errors import ConfigError


def test_limits_grow_with_the_size_of_the_file():
    limits = Allowance(memory_mib=1, memory_ratio=2, seconds=3, seconds_per_mib=4)
    assert limits.memory_bytes(10 * 2**20) == 21 * 2**20
    assert limits.time_s(10 * 2**20) == 43


def test_the_environment_sets_limits(monkeypatch):
    monkeypatch.setenv(VARIABLE, 'memory_mib=7, depth=5')
    assert allowance() == Allowance(memory_mib=7, depth=5)


def test_a_block_sets_limits(monkeypatch):
    monkeypatch.setenv(VARIABLE, 'memory_mib=7')
    with limited_to(Allowance(depth=3)):
        assert allowance() == Allowance(depth=3)
    assert allowance() == Allowance(memory_mib=7)


@pytest.mark.parametrize(
    'text', ['size=3', 'depth=2.5', 'memory_mib=-1', 'seconds=inf', 'seconds=nan', 'seconds']
)
def test_what_is_no_limit_is_refused_by_name(text):
    with pytest.raises(ConfigError, match=text.partition('=')[0]):
        parse_allowance(text)


def test_the_error_names_file_limit_and_remedy():
    message = str(exceeded('a.gz', 'decompresses to more than 512 MiB', 'memory_mib'))
    assert message.startswith('a.gz: decompresses')
    assert f'{VARIABLE}=memory_mib=' in message
