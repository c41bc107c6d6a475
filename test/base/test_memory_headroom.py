import resource

import numpy as np
import pytest

from osmabench_ros.base.limits.meter import memory_headroom

GIB = 1 << 30


def test_more_memory_than_the_headroom_is_refused_and_only_within_the_block() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(MemoryError), memory_headroom(GIB // 4):
        np.empty(GIB, np.uint8)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert len(np.empty(GIB, np.uint8)) == GIB


def test_less_memory_than_the_headroom_is_given() -> None:
    with memory_headroom(GIB):
        assert len(np.empty(GIB // 4, np.uint8)) == GIB // 4
