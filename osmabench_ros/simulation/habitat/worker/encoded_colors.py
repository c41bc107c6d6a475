"""Copies of assets and URDF files that have the intended colours under either shader.

The flat shader multiplies colour factors as they are, so its assets need encoded ones.
"""

from __future__ import annotations

import json
import os
import struct
import xml.etree.ElementTree as ElementTree
from typing import Any, BinaryIO

_HEADER = struct.Struct('<4sII')
_CHUNK = struct.Struct('<I4s')
FOLDER, URDF_FOLDER = 'assets', 'urdf'


def use_encoded_colors(manager: Any, handles: list[str]) -> None:
    """Make templates of .glb assets render copies with encoded colour factors, if any."""
    for handle in handles:
        template = manager.get_template_by_handle(handle)
        asset = template.render_asset_fullpath or template.render_asset_handle
        if not asset.endswith('.glb') or not os.path.isfile(asset):
            continue
        copy = os.path.abspath(os.path.join(FOLDER, handle.strip(os.sep).replace(os.sep, '_')))
        copy += '.glb'
        if write_with_encoded_colors(asset, copy):
            template.render_asset_handle = copy
            manager.register_template(template, handle)


def write_with_encoded_colors(asset: str, copy: str) -> bool:
    """Copy a .glb file with its colour factors encoded as sRGB; return whether that was needed."""
    with open(asset, 'rb') as source:
        content = _read_json(source)
        changed = [_encode(material) for material in content.get('materials', [])]
        if not any(changed):
            return False
        rest = source.read()
    text = json.dumps(content).encode()
    text += b' ' * (-len(text) % 4)
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    with open(copy, 'wb') as target:
        length = _HEADER.size + _CHUNK.size + len(text) + len(rest)
        target.write(_HEADER.pack(b'glTF', 2, length) + _CHUNK.pack(len(text), b'JSON'))
        target.write(text + rest)
    return True


def _read_json(source: BinaryIO) -> dict[str, Any]:
    """Return the description a .glb file begins with; empty if it is none of version 2."""
    start = source.read(_HEADER.size + _CHUNK.size)
    if len(start) < _HEADER.size + _CHUNK.size:
        return {}
    magic, version, _ = _HEADER.unpack_from(start)
    length, kind = _CHUNK.unpack_from(start, _HEADER.size)
    if (magic, version, kind) != (b'glTF', 2, b'JSON'):
        return {}
    content: dict[str, Any] = json.loads(source.read(length))
    return content


def _encode(material: dict[str, Any]) -> bool:
    surface = material.get('pbrMetallicRoughness', {})
    factor = surface.get('baseColorFactor', [1.0, 1.0, 1.0, 1.0])
    encoded = [_encode_srgb(channel) for channel in factor[:3]]
    if encoded == factor[:3]:
        return False
    surface['baseColorFactor'] = [*encoded, factor[3]]
    return True


def _encode_srgb(linear: float) -> float:
    """Encode by IEC 61966-2-1; 0 and 1 stay as they are."""
    if linear <= 0.0 or linear >= 1.0:
        return linear
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055


def use_meant_colors(manager: Any, handles: list[str], flat: bool) -> None:
    """Make templates of articulated objects use copies with the colours their shader needs."""
    for handle in handles:
        template = manager.get_template_by_handle(handle)
        source = template.urdf_fullpath or template.urdf_filepath
        if not os.path.isfile(source):
            continue
        name = source.strip(os.sep).replace(os.sep, '_')
        copy = os.path.abspath(os.path.join(URDF_FOLDER, 'flat' if flat else 'lit', name))
        write_copy(source, copy, flat)
        template.urdf_filepath = copy
        manager.register_template(template, handle)


def write_copy(source: str, copy: str, flat: bool) -> None:
    """Copy a URDF file: whole paths, and colours for the flat or for a linear shader."""
    tree = ElementTree.parse(source)  # noqa: S314, the loader has read and checked it before
    for mesh in tree.iter('mesh'):
        path = os.path.join(os.path.dirname(source), mesh.get('filename', ''))
        mesh.set('filename', os.path.abspath(path))
        if flat and path.endswith('.glb') and os.path.isfile(path):
            name = os.path.abspath(path).strip(os.sep).replace(os.sep, '_')
            encoded = os.path.join(os.path.dirname(copy), name)
            if write_with_encoded_colors(path, encoded):
                mesh.set('filename', encoded)
    if not flat:
        for color in tree.iter('color'):
            values = [float(value) for value in color.get('rgba', '').split()]
            linear = [*map(_decode_srgb, values[:3]), *values[3:]]
            color.set('rgba', ' '.join(repr(value) for value in linear))
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    tree.write(copy, encoding='utf-8', xml_declaration=True)


def _decode_srgb(encoded: float) -> float:
    """Decode by IEC 61966-2-1."""
    return encoded / 12.92 if encoded <= 0.04045 else ((encoded + 0.055) / 1.055) ** 2.4
