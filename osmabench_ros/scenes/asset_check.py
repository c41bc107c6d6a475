"""Refuses mesh files that trimesh passes over: broken textures, and glTF (2.0, 3.6-3.8 and 4)."""

from __future__ import annotations

import base64
import io
import math
import struct
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.documents import parse_json
from osmabench_ros.base.limits.images import undecoded_image
from osmabench_ros.base.limits.reading import shown
from osmabench_ros.errors import LimitError, MissingFileError, OsmabenchWarning, SceneError
from osmabench_ros.scenes.asset_files import IMAGE_SUFFIXES

_REFERENCES = {
    'accessors': {'bufferView': 'bufferViews'},
    'bufferViews': {'buffer': 'buffers'},
    'images': {'bufferView': 'bufferViews'},
    'nodes': {'mesh': 'meshes', 'children': 'nodes', 'skin': 'skins', 'camera': 'cameras'},
    'scenes': {'nodes': 'nodes'},
    'skins': {'joints': 'nodes', 'inverseBindMatrices': 'accessors'},
    'textures': {'source': 'images', 'sampler': 'samplers'},
}
_KINDS = (*_REFERENCES, 'buffers', 'cameras', 'materials', 'meshes', 'samplers')
_COMPONENT_BYTES = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}
_COMPONENTS = {
    'SCALAR': 1, 'VEC2': 2, 'VEC3': 3, 'VEC4': 4, 'MAT2': 4, 'MAT3': 9, 'MAT4': 16,
}  # fmt: skip
_MEMORY_RATIO = 8
"""Memory of a loaded primitive over the bytes of its accessors: double precision, copies."""


class GltfStructure:
    """What a glTF file consists of, by its JSON; ValueError if a part has the wrong form."""

    def __init__(self, header: Mapping[str, Any], path: Path) -> None:
        self._path = path
        self.parts: dict[str, list[dict[str, Any]]] = {
            kind: _objects(header, kind, 'the file') for kind in _KINDS
        }
        self._scene = header.get('scene', 0)

    def check(self, size_bytes: int) -> None:
        """Check all of it; ValueError names a wrong part, LimitError if it takes too much."""
        for kind, keys in _REFERENCES.items():
            for where, item in self._numbered(kind):
                for key, wanted in keys.items():
                    self._check_references(item.get(key, []), wanted, f'{where}.{key}')
        if self.parts['scenes']:
            self._check_references(self._scene, 'scenes', 'scene')
        for where, item in self._numbered('materials'):
            for place, texture in _textures(item, where):
                self._check_references(texture.get('index', []), 'textures', f'{place}.index')
        self._check_tree()
        self._check_memory(size_bytes)

    def _numbered(self, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for number, item in enumerate(self.parts[kind]):
            yield f'{kind}[{number}]', item

    def _check_references(self, value: Any, kind: str, where: str) -> None:
        there = len(self.parts[kind])
        for item in value if isinstance(value, list) else [value]:
            if type(item) is not int or not 0 <= item < there:
                raise ValueError(f'{where} is {str(item)[:40]}, but there are {there} {kind}')

    def _check_tree(self) -> None:
        children = [item.get('children', []) for item in self.parts['nodes']]
        below = [child for group in children for child in group]
        if len(set(below)) < len(below):
            raise ValueError('a node has two parents, but nodes must form trees')
        level = sorted(set(range(len(children))) - set(below))
        reached = depth = 0
        while level:
            reached, depth = reached + len(level), depth + 1
            if depth > allowance().depth:
                text = f'has nodes nested deeper than {allowance().depth} levels'
                raise exceeded(self._path, text, 'depth')
            level = [child for node in level for child in children[node]]
        if reached < len(children):
            raise ValueError('a node is its own ancestor, but nodes must form trees')

    def _check_memory(self, size_bytes: int) -> None:
        accessors = [self._accessor_bytes(*item) for item in self._numbered('accessors')]
        copied = sum(count for count, is_view in accessors if not is_view)
        meshes = [self._mesh_bytes(*item, accessors) for item in self._numbered('meshes')]
        placed = sum(meshes[item['mesh']] for item in self.parts['nodes'] if 'mesh' in item)
        needed = copied + _MEMORY_RATIO * (sum(meshes) + placed)
        if needed > allowance().memory_bytes(size_bytes):
            raise exceeded(self._path, f'claims to hold {needed} bytes of geometry', 'memory_mib')

    def _accessor_bytes(self, where: str, item: Mapping[str, Any]) -> tuple[int, bool]:
        """Return the size of an accessor, and whether its view has it as it is."""
        count, start = _whole(item, 'count', where, None), _whole(item, 'byteOffset', where, 0)
        kind, shape = item.get('componentType'), item.get('type')
        if kind not in _COMPONENT_BYTES or shape not in _COMPONENTS:
            raise ValueError(f'{where} has no known componentType and type')
        row = _COMPONENT_BYTES[kind] * _COMPONENTS[shape]
        if 'bufferView' not in item:
            return count * row, False
        view, place = self.parts['bufferViews'][item['bufferView']], f'{where}.bufferView'
        stride, length = (_whole(view, key, place, 0) for key in ('byteStride', 'byteLength'))
        _whole(view, 'byteOffset', place, 0)
        if count and start + (count - 1) * (stride or row) + row > length:
            raise ValueError(f'{where} has {count} elements, more than its view of {length} bytes')
        return count * row, not stride

    def _mesh_bytes(
        self, where: str, mesh: Mapping[str, Any], accessors: list[tuple[int, bool]]
    ) -> int:
        total = 0
        for number, item in enumerate(_objects(mesh, 'primitives', where)):
            place = f'{where}.primitives[{number}]'
            groups = [
                item.get('attributes', {}), *_objects(item, 'targets', place)
            ]  # fmt: skip
            if not isinstance(groups[0], dict):
                raise ValueError(f'{place}.attributes is no object')
            used = [value for group in groups for value in group.values()]
            used += [item['indices']] if 'indices' in item else []
            self._check_references(used, 'accessors', place)
            self._check_references(item.get('material', []), 'materials', f'{place}.material')
            total += sum(accessors[value][0] for value in used)
        return total


def _objects(owner: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    value = owner.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f'"{key}" of {where} is no list of objects')
    return value


def _whole(owner: Mapping[str, Any], key: str, where: str, default: int | None) -> int:
    value = owner.get(key, default)
    if type(value) is not int or not 0 <= value < math.inf:
        raise ValueError(f'{where}.{key} is {str(value)[:40]}, not a whole number from 0')
    return value


def _textures(data: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in data.items() if isinstance(data, dict) else ():
        if key.endswith('Texture') and isinstance(value, dict):
            yield f'{where}.{key}', value
        yield from _textures(value, f'{where}.{key}')


_GLB_MAGIC, _GLB_HEADER = b'glTF', 12
_JSON, _BINARY = b'JSON', b'BIN\0'
_CHUNK = struct.Struct('<I4s')


@dataclass(frozen=True)
class GltfImage:
    """An image as it is in the file, with its name, or else number; the type may be empty."""

    name: str
    mime_type: str
    data: bytes


class GltfFile:
    """A glTF or GLB file, whose other files `read` returns by name; ValueError if it is none."""

    def __init__(self, path: Path, data: bytes, read: Callable[[str], bytes]) -> None:
        self._read = read
        chunks = list(_chunks(data)) if data[:4] == _GLB_MAGIC else [(_JSON, data)]
        kinds = [kind for kind, _ in chunks]
        if kinds.count(_JSON) != 1 or kinds[0] != _JSON or kinds.count(_BINARY) > 1:
            raise ValueError('it must hold one part with JSON, then one with data')
        self._header = parse_json(chunks[0][1], path, SceneError)
        if not isinstance(self._header, dict):
            raise ValueError('the content is no JSON object')
        GltfStructure(self._header, path).check(len(data))
        self._binary = dict(chunks).get(_BINARY, b'')

    def images(self) -> Iterator[GltfImage]:
        """Yield the images; ValueError, FileNotFoundError if one is not where the file says."""
        for number, image in enumerate(self._header.get('images', ())):
            uri = str(image.get('uri', ''))
            embedded = not uri or uri.startswith('data:')
            name = str(image.get('name') or number) if embedded else uri
            yield GltfImage(name, str(image.get('mimeType', '')), self._image(image, name))

    def skinned_nodes(self) -> list[str]:
        """Return the names, or numbers, of the nodes whose mesh a skeleton bends."""
        nodes = self._header.get('nodes', ())
        return [
            str(node.get('name', number))
            for number, node in enumerate(nodes)
            if 'skin' in node and 'mesh' in node
        ]

    def _image(self, image: Mapping[str, Any], name: str) -> bytes:
        if 'uri' in image:
            return self._file(str(image['uri']), f'image "{name}"')
        try:
            view = self._header['bufferViews'][image['bufferView']]
            start, length = view.get('byteOffset', 0), view['byteLength']
            data = self._buffer(view['buffer'])[start : start + length]
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(f'image "{name}" has no data in the file ({error!r})') from error
        if len(data) != length:
            raise ValueError(f'image "{name}" goes beyond the end of its buffer')
        return data

    def _buffer(self, number: int) -> bytes:
        uri = self._header['buffers'][number].get('uri')
        return self._binary if uri is None else self._file(str(uri), f'buffer {number}')

    def _file(self, uri: str, what: str) -> bytes:
        if not uri.startswith('data:'):
            return self._read(uri)
        try:
            return base64.b64decode(uri.partition(',')[2], validate=True)
        except ValueError as error:
            raise ValueError(f'{what} is not base64: {error}') from error


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = _GLB_HEADER
    while place + _CHUNK.size <= len(data):
        length, kind = _CHUNK.unpack_from(data, place)
        place += _CHUNK.size
        yield kind, data[place : place + length]
        place += length


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
