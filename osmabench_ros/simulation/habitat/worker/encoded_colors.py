"""Copies of assets with encoded colour factors, which the flat shader multiplies as they are."""

from __future__ import annotations

import json
import os
import struct
from typing import Any, BinaryIO

_HEADER = struct.Struct('<4sII')
_CHUNK = struct.Struct('<I4s')
FOLDER = 'assets'


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
        content = _json_of(source)
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


def _json_of(source: BinaryIO) -> dict[str, Any]:
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
    encoded = [_srgb(channel) for channel in factor[:3]]
    if encoded == factor[:3]:
        return False
    surface['baseColorFactor'] = [*encoded, factor[3]]
    return True


def _srgb(linear: float) -> float:
    """Encode by IEC 61966-2-1; 0 and 1 stay as they are."""
    if linear <= 0.0 or linear >= 1.0:
        return linear
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055
