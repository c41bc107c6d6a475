"""Refuses mesh files with missing or broken textures, which trimesh passes over."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.images import undecoded_image
from osmabench_ros.base.limits.reading import shown
from osmabench_ros.errors import LimitError, MissingFileError, OsmabenchWarning, SceneError
from osmabench_ros.scenes.asset_files import IMAGE_SUFFIXES
from osmabench_ros.scenes.gltf_file import GltfFile, GltfImage

GLTF_SUFFIXES = ('.glb', '.gltf')

COMPRESSED_MAGIC = (b'\xabKTX 20\xbb', b'sB')
"""First bytes of KTX 2 and Basis, formats for graphics cards, which are not decoded here."""

COMPRESSED_TYPES = ('image/ktx2', 'image/basis', 'image/x-basis')


def check_textures(path: Path, files: Any) -> None:
    """Raise a SceneError, with the name, for a missing or broken texture of a mesh file."""
    if gone := [name for name in files.missing if name.lower().endswith(IMAGE_SUFFIXES)]:
        raise _missing(path, gone[0])
    if files.faults:
        raise files.faults[0]


def check_named(path: Path, name: str, data: bytes) -> None:
    """Refuse a file that a mesh names if it is no texture that is decoded, nor materials."""
    if not name.lower().endswith('.mtl') or _is_picture(data):
        _check_image(path, GltfImage(name, '', data))


def _is_picture(data: bytes) -> bool:
    from PIL import Image

    try:
        Image.open(io.BytesIO(data))
    except Image.DecompressionBombError:
        return True
    except Exception:  # as above; trimesh can make no more of it
        return False
    return True


def checked_gltf(path: Path, data: bytes, files: Any) -> GltfFile:
    """Return a glTF file that fits together, with whole textures; else SceneError, LimitError."""
    try:
        gltf = GltfFile(path, data, files.get)
        images = list(gltf.images())
    except FileNotFoundError:
        raise _missing(path, files.missing[-1]) from None
    except (ValueError, TypeError, AttributeError) as error:
        raise SceneError(f'{path}: {error}; export the file again') from error
    for image in images:
        _check_image(path, image)
    return gltf


def _check_image(path: Path, image: GltfImage) -> None:
    if fault := image_fault(image):
        raise SceneError(
            f'{path}: texture "{image.name}" cannot be decoded: {fault}; replace it by a '
            'complete PNG or JPEG, or take it out of the file'
        )


def warn_of_unread(path: Path, gltf: GltfFile) -> None:
    """Warn of compressed textures and skins of a glTF file that is in order."""
    if any(image.data.startswith(COMPRESSED_MAGIC) for image in gltf.images()):
        _warn(
            f'{path}: textures in Basis or KTX 2 format are not decoded; they are grey in the '
            'simulator "opengl". Use a file with PNG or JPEG, or the simulator "habitat"'
        )
    if skinned := gltf.skinned_nodes():
        more = f' (and {len(skinned) - 1} more)' if len(skinned) > 1 else ''
        _warn(
            f'{path}: node "{skinned[0]}"{more} has a skin, which is not read; it stands in its '
            'bind pose. Apply the pose to the mesh before the export'
        )


def image_fault(image: GltfImage) -> str:
    """Return the fault of an image, '' if none; KTX 2 and Basis are not checked."""
    if image.data.startswith(COMPRESSED_MAGIC):
        return ''
    if image.data and image.mime_type in COMPRESSED_TYPES:
        return f'its type is {image.mime_type}, but its content is not'
    try:
        opened = undecoded_image(image.data, 'it', SceneError)
        if opened.format == 'PNG':
            opened.verify()  # its checksums find as much damage as decoding, much faster
        else:
            opened.draft('RGB', (1, 1))  # a JPEG is read to its end, but not drawn in full
            opened.load()
    except LimitError:
        raise
    except Exception as error:  # decoders raise whatever they meet in damaged data
        return str(error)
    return ''


def _missing(path: Path, name: str) -> MissingFileError:
    return MissingFileError(
        f'{path} names the texture {shown(name)}, which is not near it; put it there, or take it '
        'out of the file'
    )


def _warn(text: str) -> None:
    warnings.warn(text, OsmabenchWarning, stacklevel=2)
