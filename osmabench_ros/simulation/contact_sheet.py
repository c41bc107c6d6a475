"""Pictures side by side with words on them, as one image file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from osmabench_ros.base.files import atomic_write
from osmabench_ros.errors import SimulationError, errors_as

CAPTION_PX = 26


def text_strip(text: str, width: int) -> NDArray[np.uint8]:
    """Return a dark strip (CAPTION_PX, width, 3) with a line of text."""
    strip = Image.new('RGB', (width, CAPTION_PX), (24, 24, 24))
    ImageDraw.Draw(strip).text((6, 5), text, fill=(240, 240, 240), font=_font())
    return np.asarray(strip)


def with_text(view: NDArray[np.uint8], text: str) -> NDArray[np.uint8]:
    """Return a picture with a line of text in its lower left corner."""
    return with_labels(view, [(6, view.shape[0] - 20, text)])


def with_labels(
    view: NDArray[np.uint8], labels: list[tuple[float, float, str]]
) -> NDArray[np.uint8]:
    """Return a picture with texts at places, each the upper left corner, x and y in pixels."""
    image = Image.fromarray(view)
    drawing = ImageDraw.Draw(image)
    for x, y, text in labels:
        drawing.text(
            (x, y), text, fill='white', font=_font(), stroke_width=2, stroke_fill='black'
        )  # fmt: skip
    return np.asarray(image)


def save_sheet(sheet: NDArray[np.uint8], path: Path, *, overwrite: bool) -> None:
    """Write an image; SimulationError if the file's name is not that of one."""
    with (
        errors_as(
            SimulationError,
            f'cannot write {path}',
            ValueError,
            remedy='give a path that ends in .png',
        ),
        atomic_write(path, overwrite=overwrite) as draft,
    ):
        Image.fromarray(sheet).save(draft)


def _font() -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(size=13)
