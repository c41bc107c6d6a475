"""What a glTF or GLB file says about its images and skins, which trimesh passes over in silence.

After the glTF 2.0 specification (Khronos), sections 3.6 (buffers), 3.7.3 (skins), 3.8 (images) and
4 (GLB).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.documents import parse_json
from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.gltf_structure import GltfStructure

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
    """A glTF or GLB file, whose other files `read` returns by name.

    Raises ValueError if it is none or its parts do not fit together, SceneError if its JSON is
    malformed, LimitError if it takes more memory or depth than allowed.
    """

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
