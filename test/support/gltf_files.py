"""Writes glTF and GLB files of one textured triangle, for tests."""

import base64
import json
import struct

import numpy as np

from support import images

TRIANGLE = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], np.float32)

_GEOMETRY = (
    TRIANGLE.tobytes()
    + np.array([[0, 0], [1, 0], [0, 1]], np.float32).tobytes()
    + struct.pack('<3H', 0, 1, 2)
    + b'\0\0'
)
_VIEWS = [
    {'buffer': 0, 'byteOffset': offset, 'byteLength': length}
    for offset, length in ((0, 36), (36, 24), (60, 6))
]


def write_gltf(path, image_uri, **changes):
    """Write a glTF with its texture in another file, or in a data URI."""
    encoded = base64.b64encode(_GEOMETRY).decode()
    buffer = {
        'byteLength': len(_GEOMETRY),
        'uri': f'data:application/octet-stream;base64,{encoded}',
    }
    path.write_text(json.dumps(_document({'uri': image_uri}, buffer, _VIEWS, changes)))


def write_glb(path, image, **image_keys):
    """Write a GLB with its texture inside."""
    data = _GEOMETRY + image
    data += bytes(-len(data) % 4)
    view = {'buffer': 0, 'byteOffset': len(_GEOMETRY), 'byteLength': len(image)}
    keys = {'bufferView': 3, 'mimeType': 'image/png', **image_keys}
    document = _document(keys, {'byteLength': len(data)}, [*_VIEWS, view], {})
    text = json.dumps(document).encode()
    text += b' ' * (-len(text) % 4)
    chunks = b''.join(
        struct.pack('<I4s', len(content), kind) + content
        for kind, content in ((b'JSON', text), (b'BIN\0', data))
    )
    path.write_bytes(struct.pack('<4sII', b'glTF', 2, 12 + len(chunks)) + chunks)


def encoded_image(kind, color=(10, 20, 30), size=64):
    """Return an image file of noise about a colour; 'png' or 'jpeg'."""
    noise = np.random.default_rng(0).integers(0, 9, (size, size, 3))
    return images.encoded_image((noise + np.array(color)).astype(np.uint8), kind)


def _document(image, buffer, views, changes):
    accessors = [
        {
            'bufferView': 0,
            'componentType': 5126,
            'count': 3,
            'type': 'VEC3',
            'min': [0, 0, 0],
            'max': [1, 1, 0],
        },
        {'bufferView': 1, 'componentType': 5126, 'count': 3, 'type': 'VEC2'},
        {'bufferView': 2, 'componentType': 5123, 'count': 3, 'type': 'SCALAR'},
    ]
    primitive = {'attributes': {'POSITION': 0, 'TEXCOORD_0': 1}, 'indices': 2, 'material': 0}
    return {
        'asset': {'version': '2.0'},
        'scene': 0,
        'scenes': [{'nodes': [0]}],
        'nodes': [{'name': 'corner', 'mesh': 0, 'translation': [0, 0, 5]}],
        'meshes': [{'primitives': [primitive]}],
        'materials': [{'pbrMetallicRoughness': {'baseColorTexture': {'index': 0}}}],
        'textures': [{'source': 0}],
        'images': [image],
        'buffers': [buffer],
        'bufferViews': views,
        'accessors': accessors,
        **changes,
    }
