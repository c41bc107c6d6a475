"""Finds and checks the files that mesh files name; trimesh passes over broken ones silently."""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from osmabench_ros import errors
from osmabench_ros.base.documents import check_characters
from osmabench_ros.base.images import FORMATS, decoded_image, encode_image
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.scenes import asset_files

GLTF_SUFFIXES = ('.glb', '.gltf')

# First bytes of KTX 2 and Basis, formats for graphics cards, which are not decoded here.
COMPRESSED_MAGIC = (b'\xabKTX 20\xbb', b'sB')

COMPRESSED_TYPES = ('image/ktx2', 'image/basis', 'image/x-basis')

# Levels of nodes in a glTF file; the time to place one grows with the square of its level.
MAX_NODE_DEPTH = 100

_GLB_HEADER, _CHUNK_HEADER = 12, 8


def allow_known_formats_only() -> None:
    """Let Pillow decode known formats only in this process; it runs Ghostscript on PostScript."""
    from PIL import Image

    Image.init()
    Image.ID[:] = [name for name in Image.ID if name in FORMATS]


def decode_texture(data: bytes, what: str) -> NDArray[np.uint8]:
    """Return an image file as a texture (h, w, 3); SceneError names `what` if it is broken."""
    return np.array(decoded_image(data, what, errors.SceneError).convert('RGB'), np.uint8)


def check_image(path: Path, name: str, data: bytes, mime_type: str = '') -> None:
    """Raise a SceneError for a broken image of a mesh file; KTX 2 and Basis are not checked."""
    if data.startswith(COMPRESSED_MAGIC):
        return
    try:
        if data and mime_type in COMPRESSED_TYPES:
            raise ValueError(f'its type is {mime_type}, but its content is not')
        image = decoded_image(data, 'it', errors.SceneError, load=False)
        if image.format == 'PNG':
            image.verify()  # its checksums find as much damage as decoding, much faster
        else:
            image.draft('RGB', (1, 1))  # a JPEG is read to its end, but not drawn in full
            image.load()
    except errors.LimitError as error:
        raise errors.LimitError(f'{path}: texture "{name}": {error}') from error
    except Exception as error:  # decoders raise whatever they meet in damaged data
        remedy = 'replace it by a complete PNG or JPEG, or take it out of the file'
        what = f'{path}: texture "{name}" cannot be decoded: {error}'
        raise errors.SceneError(f'{what}; {remedy}') from error


class MeshFiles:
    """Textures and other files that a mesh file names, checked, for trimesh as its resolver.

    They are in the folder of the mesh or below, or in folders where models keep textures;
    `textures` says how the others are found.
    """

    def __init__(self, mesh: Path, textures: asset_files.TextureSearch) -> None:
        self.missing: list[str] = []
        self._mesh, self._textures = mesh, textures
        self._faults: list[errors.OsmabenchError] = []
        self._contents: dict[str, bytes] = {}

    def get(self, key: str) -> bytes:
        """Return the content of a file; FileNotFoundError, or the error of a broken one."""
        name = unquote(str(key)).replace('\\', '/').removeprefix('file://')
        if name not in self._contents:
            path = self._find(name) or asset_files.find_picture(name, self._textures.folders)
            if path is not None:
                self._contents[name] = self._read(name, path)
            elif self._textures.grey_if_missing and asset_files.is_picture_name(name):
                self._contents[name] = _make_grey()
            else:
                self.missing.append(name)
                raise FileNotFoundError(f'{key} is not near {self._mesh}')
        return self._contents[name]

    __getitem__ = get

    def _find(self, name: str) -> Path | None:
        folder = self._mesh.parent.resolve()
        last = name.rpartition('/')[2]
        roots = [folder, folder.parent / 'materials', folder.parent / 'textures']
        for place in (name, last, f'../materials/textures/{last}', f'../textures/{last}'):
            path = folder / place
            if asset_files.leads_into(roots, path) and path.is_file():
                return path
        return None

    def _read(self, name: str, path: Path) -> bytes:
        try:
            data = read_bytes(path, errors.SceneError)
            in_gltf = self._mesh.suffix.lower() in GLTF_SUFFIXES  # where all are checked together
            if not in_gltf and not name.lower().endswith('.mtl'):
                check_image(self._mesh, name, data)
        except errors.OsmabenchError as error:
            self._faults.append(error)
            raise
        return data

    def check(self) -> None:
        """Raise a SceneError, with the name, for a texture that was missing or broken."""
        if gone := [name for name in self.missing if asset_files.is_picture_name(name)]:
            raise self.make_missing_error(gone[0])
        if self._faults:
            raise self._faults[0]

    def make_missing_error(self, name: str) -> errors.MissingFileError:
        """Return the error of a texture that is nowhere."""
        problem = f'{self._mesh} names the texture {name}, which is not near it'
        return errors.MissingFileError(f'{problem}; put it there, or take it out of the file')


def _make_grey() -> bytes:
    """Return a picture in place of a missing one, as bright as a neutral material."""
    from PIL import Image

    return encode_image(Image.new('RGB', (1, 1), (204, 204, 204)), 'PNG')


def check_gltf(path: Path, data: bytes, files: MeshFiles) -> None:
    """Check nodes and images of a glTF file, and warn of images and skins that are not read."""
    try:
        header, binary = _split_parts(data)
        _check_depth(header)
        _check_textures_of_materials(header)
        images = list(_read_images(header, binary, files))
        skinned = [
            str(node.get('name', number))
            for number, node in enumerate(header.get('nodes', ()))
            if 'skin' in node and 'mesh' in node
        ]
    except FileNotFoundError:
        raise files.make_missing_error(files.missing[-1]) from None
    except Exception as error:  # anything may be anywhere in a damaged document
        what = f'{path}: {type(error).__name__}: {error}'
        raise errors.SceneError(f'{what}; export the file again') from error
    for image in images:
        check_image(path, *image)
    if any(content.startswith(COMPRESSED_MAGIC) for _, content, _ in images):
        errors.warn(
            f'{path}: textures in Basis or KTX 2 format are not decoded; they are grey in the '
            'simulator "opengl". Use a file with PNG or JPEG, or the simulator "habitat"'
        )
    if skinned:
        more = f' (and {len(skinned) - 1} more)' if len(skinned) > 1 else ''
        errors.warn(
            f'{path}: node "{skinned[0]}"{more} has a skin, which is not read; it stands in its '
            'bind pose. Apply the pose to the mesh before the export'
        )


def _split_parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the JSON of a glTF or GLB file, and the data that a GLB holds."""
    if data[:4] != b'glTF':
        check_characters(data, 'it', errors.SceneError)
        return json.loads(data), b''
    claimed = int.from_bytes(data[8:12], 'little')
    if claimed > len(data):
        raise ValueError(f'it claims {claimed} bytes and has {len(data)}')
    start = _GLB_HEADER + _CHUNK_HEADER
    end = start + int.from_bytes(data[_GLB_HEADER : _GLB_HEADER + 4], 'little')
    check_characters(data[start:end], 'it', errors.SceneError)
    return json.loads(data[start:end]), data[end + _CHUNK_HEADER :]


def _check_depth(header: Mapping[str, Any]) -> None:
    nodes = header.get('nodes', ())
    level = set(range(len(nodes)))
    for _ in range(MAX_NODE_DEPTH):
        level = {child for index in level for child in nodes[index].get('children', ())}
    if level:
        raise ValueError(f'its nodes have more than {MAX_NODE_DEPTH} levels, or form a circle')


def _check_textures_of_materials(header: Mapping[str, Any]) -> None:
    """Refuse indices of textures and images that are not there; trimesh passes over them."""
    textures = header.get('textures', ())
    images = header.get('images', ())
    for number, texture in enumerate(textures):
        for item in (texture, *texture.get('extensions', {}).values()):
            if 'source' in item:
                _check_index(f'texture {number}', 'image', item['source'], len(images))
    for number, material in enumerate(header.get('materials', ())):
        for index in _find_texture_indices(material):
            _check_index(f'material {number}', 'texture', index, len(textures))


def _check_index(owner: str, kind: str, index: Any, count: int) -> None:
    if index not in range(count):
        raise ValueError(f'{owner} names {kind} {index} of {count} (from 0 on)')


def _find_texture_indices(material: Mapping[str, Any]) -> Iterator[Any]:
    for key, value in material.items():
        if key.endswith('Texture'):
            yield value['index']
        elif isinstance(value, dict):
            yield from _find_texture_indices(value)


def _read_images(
    header: Mapping[str, Any], binary: bytes, files: MeshFiles
) -> Iterator[tuple[str, bytes, str]]:
    """Yield the name, content and type of each image."""

    def content(uri: str) -> bytes:
        if not uri.startswith('data:'):
            return files.get(uri)
        return base64.b64decode(uri.partition(',')[2], validate=True)

    for number, image in enumerate(header.get('images', ())):
        uri = image.get('uri', '')
        name = str(image.get('name') or number)
        if uri:
            data = content(uri)
            name = name if uri.startswith('data:') else uri
        else:
            view = header['bufferViews'][image['bufferView']]
            source = header['buffers'][view['buffer']].get('uri')
            start = view.get('byteOffset', 0)
            length = view['byteLength']
            data = (binary if source is None else content(source))[start : start + length]
        yield name, data, str(image.get('mimeType', ''))
