"""Images that the passes render into."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.simulation.opengl.textures import SRGB8_ALPHA8


class Targets:
    """Surface images of the geometry pass and the lit image, in the current context."""

    def __init__(self, context: Any, width: int, height: int) -> None:
        size = (width, height)
        self._shape = (height, width)
        self.albedo = context.texture(size, 4, internal_format=SRGB8_ALPHA8)
        self.depth_and_id = context.texture(size, 2, dtype='f4')
        self.normal = context.texture(size, 4, dtype='f2')
        self._color = context.texture(size, 4, internal_format=SRGB8_ALPHA8)
        self._depth_buffer = context.depth_renderbuffer(size)
        self.surface = context.framebuffer(
            [self.albedo, self.depth_and_id, self.normal], self._depth_buffer
        )
        self.image = context.framebuffer([self._color])

    def read_color(self) -> NDArray[np.uint8]:
        """Return the lit image, shape (height, width, 3)."""
        return self._opaque(self.image.read(components=4))

    def read_albedo(self) -> NDArray[np.uint8]:
        """Return the surface colours, shape (height, width, 3), black without surface."""
        return self._opaque(self.surface.read(components=4, attachment=0))

    def read_depth_and_number(self) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Return z in metres (+inf without surface) and object numbers, (height, width) each."""
        raw = np.frombuffer(self.surface.read(components=2, attachment=1, dtype='f4'), np.float32)
        pair = raw.reshape(*self._shape, 2)
        number = pair[..., 1].astype(np.int32)
        return np.where(number > 0, pair[..., 0], np.float32(np.inf)), number

    def _opaque(self, raw: bytes) -> NDArray[np.uint8]:
        pixels = np.frombuffer(raw, np.uint8).reshape(*self._shape, 4)
        return np.ascontiguousarray(pixels[..., :3])

    def release(self) -> None:
        """Free all images."""
        for item in (
            self.surface,
            self.image,
            self.albedo,
            self.depth_and_id,
            self.normal,
            self._color,
            self._depth_buffer,
        ):
            item.release()
