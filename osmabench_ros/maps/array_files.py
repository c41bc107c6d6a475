"""NumPy array files, written so that equal arrays are equal bytes."""

from __future__ import annotations

from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


def write_npy(stream: IO[bytes], array: NDArray[Any]) -> None:
    """Write an array as .npy version 1.0, little-endian, C order; equal arrays, equal bytes."""
    little = np.ascontiguousarray(array, array.dtype.newbyteorder('<'))
    np.lib.format.write_array(stream, little, version=(1, 0), allow_pickle=False)
