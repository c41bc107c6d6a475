"""Copies of URDF files whose display colours come out as they are meant, under either shader."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from typing import Any

from .encoded_colors import write_with_encoded_colors

FOLDER = 'urdf'


def use_meant_colors(manager: Any, handles: list[str], flat: bool) -> None:
    """Make templates of articulated objects use copies with the colours their shader needs."""
    for handle in handles:
        template = manager.get_template_by_handle(handle)
        source = template.urdf_fullpath or template.urdf_filepath
        if not os.path.isfile(source):
            continue
        name = source.strip(os.sep).replace(os.sep, '_')
        copy = os.path.abspath(os.path.join(FOLDER, 'flat' if flat else 'lit', name))
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
            linear = [*map(_linear, values[:3]), *values[3:]]
            color.set('rgba', ' '.join(repr(value) for value in linear))
    os.makedirs(os.path.dirname(copy), exist_ok=True)
    tree.write(copy, encoding='utf-8', xml_declaration=True)


def _linear(encoded: float) -> float:
    """Decode by IEC 61966-2-1."""
    return encoded / 12.92 if encoded <= 0.04045 else ((encoded + 0.055) / 1.055) ** 2.4
