"""How the prims of a USD stage look: colours and textures of their materials."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.color import encoded
from osmabench_ros.base.images import undecoded_image
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.assets import NEUTRAL
from osmabench_ros.scenes.scene import Material

COLOR_INPUTS = ('diffuseColor', 'diffuse_color_constant')
TEXTURE_INPUT = 'diffuse_texture'
"""Inputs of UsdPreviewSurface, and of the materials of Isaac Sim."""


class Materials:
    """Reads the materials of a stage, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, tuple[Material, str]] = {}

    def of(self, prim: Any) -> tuple[Material, str]:
        """Return how a prim looks, and the name of the texture coordinates, '' without any."""
        from pxr import UsdGeom, UsdShade

        bound = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()[0]
        key = str(bound.GetPath()) if bound else ''
        if key:
            if key not in self._known:
                self._known[key] = self._shaded(bound)
            return self._known[key]
        shape = prim if prim.IsA(UsdGeom.Gprim) else prim.GetParent()
        colors = UsdGeom.PrimvarsAPI(shape).FindPrimvarWithInheritance('displayColor')
        values = np.array(colors.Get() or ()) if colors else np.empty(0)
        if not values.size:
            return NEUTRAL, ''
        return _plain_material(values.reshape(-1, 3).mean(axis=0)), ''

    def _shaded(self, material: Any) -> tuple[Material, str]:
        from pxr import UsdShade

        for context in ('', 'mdl'):
            shader = material.ComputeSurfaceSource(context)[0]
            if shader:
                break
        else:
            return NEUTRAL, ''
        texture = shader.GetInput(TEXTURE_INPUT)
        if texture and texture.Get():
            return self._textured(texture.Get()), 'st'
        for name in COLOR_INPUTS:
            given = shader.GetInput(name)
            for attribute in UsdShade.Utils.GetValueProducingAttributes(given) if given else ():
                source = UsdShade.Shader(attribute.GetPrim())
                if source and source.GetIdAttr().Get() == 'UsdUVTexture':
                    image = source.GetInput('file')
                    return self._textured(image.Get() if image else None), _uv_name(source)
                return _plain_material(np.array(attribute.Get(), float)), ''
        return NEUTRAL, ''

    def _textured(self, asset: Any) -> Material:
        place = asset.resolvedPath if asset else ''
        if not place:
            return NEUTRAL
        what = f'{self._path}: texture {asset.path}'
        archive, _, inner = place.rstrip(']').partition('[')
        data = read_bytes(Path(archive), SceneError)
        if inner:
            try:
                data = zipfile.ZipFile(io.BytesIO(data)).read(inner)
            except (KeyError, zipfile.BadZipFile) as error:
                raise SceneError(f'{what} cannot be read: {error}') from error
        try:
            image = np.array(undecoded_image(data, what, SceneError).convert('RGB'), np.uint8)
        except OSError as error:
            raise SceneError(f'{what} cannot be decoded: {error}') from error
        return Material((1.0, 1.0, 1.0), image)


def _uv_name(texture: Any) -> str:
    """Return the name of the texture coordinates that a texture is laid by."""
    from pxr import UsdShade

    given = texture.GetInput('st')
    for attribute in UsdShade.Utils.GetValueProducingAttributes(given) if given else ():
        reader = UsdShade.Shader(attribute.GetPrim())
        name = reader.GetInput('varname') if reader else None
        for value in UsdShade.Utils.GetValueProducingAttributes(name) if name else ():
            return str(value.Get())
    return 'st'


def _plain_material(linear: NDArray[np.float64]) -> Material:
    red, green, blue = encoded(np.clip(linear[:3], 0, 1)).tolist()
    return Material((red, green, blue))
