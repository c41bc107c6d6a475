"""Images as bytes of a file."""

import io

from PIL import Image


def encoded_image(pixels, kind='PNG', **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()
