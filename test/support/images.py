"""Images as bytes of a file."""

import io
from typing import Any

import numpy as np
from PIL import Image


def encoded_image(pixels: np.ndarray, kind: str = 'PNG', **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()
