import resource
import subprocess
import sys

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


PRODUCT = """
import numpy as np
from osmabench_ros.base.limits.meter import memory_headroom
square = np.ones((600, 600))
with memory_headroom(16 << 20):
    print(np.matmul(square, square).sum())
"""


def test_what_linear_algebra_takes_at_its_first_product_is_not_counted() -> None:
    # It takes memory for each processor and, denied, ends the process: 16 cores need 512 MiB.
    done = subprocess.run(
        [sys.executable, '-c', PRODUCT], capture_output=True, text=True, check=False
    )
    assert float(done.stdout or 'nan') == 600**3, done.stderr
