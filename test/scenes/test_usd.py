"""USD stages as scenes, held to positions and colours by hand."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from osmabench_ros.errors import (
    MissingDependencyError,
    MissingFileError,
    OsmabenchWarning,
    SceneError,
)
from osmabench_ros.scenes.importing import import_scene
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import LightKind, Scene
from osmabench_ros.scenes.worlds.parts import WorldOptions
from osmabench_ros.scenes.worlds.usd import load_usd_stage

with_usd = pytest.mark.skipif(
    importlib.util.find_spec('pxr') is None, reason='usd-core is not installed'
)

QUAD = """
    point3f[] points = [(0, 0, 0), (2, 0, 0), (2, 1, 0), (0, 1, 0)]
    int[] faceVertexCounts = [4]
    int[] faceVertexIndices = [0, 1, 2, 3]
    uniform token subdivisionScheme = "none"
"""


def write_stage(folder: Path, content: str, up: str = 'Z', unit_m: float = 1.0) -> Path:
    path = folder / 'room.usda'
    path.write_text(
        f'#usda 1.0\n(\n defaultPrim = "World"\n upAxis = "{up}"\n metersPerUnit = {unit_m}\n)\n'
        f'def Xform "World"\n{{\n{content}\n}}\n'
    )
    return path


def boxes(scene: Scene) -> dict[str, list[list[float]]]:
    return {
        item.name: (np.round([item.box.minimum, item.box.maximum], 4) + 0.0).tolist()
        for item in scene.objects
    }


def move(x: float, y: float, z: float) -> str:
    return (
        f'double3 xformOp:translate = ({x}, {y}, {z})\n'
        'uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    )


@with_usd
def test_centimetres_and_y_up_become_metres_and_z_up(tmp_path: Path) -> None:
    content = (
        'def Xform "Chair_01"\n{\n' + move(100, 50, -30) + 'def Cube "seat"\n{\n'
        'double size = 40\n}\n}\n'
        'def Cylinder "Lamp"\n{\ndouble radius = 10\ndouble height = 100\n'
        'uniform token axis = "Y"\n' + move(0, 50, 0) + '}\n'
        'def Capsule "Bone"\n{\ndouble radius = 10\ndouble height = 100\n'
        'uniform token axis = "X"\n}\n'
    )
    found = boxes(load_usd_stage(write_stage(tmp_path, content, 'Y', 0.01)))
    assert found['Chair_01'] == [[0.8, 0.1, 0.3], [1.2, 0.5, 0.7]]
    assert found['Lamp'] == [[-0.1, -0.1, 0], [0.1, 0.1, 1]]
    assert found['Bone'] == [[-0.6, -0.1, -0.1], [0.6, 0.1, 0.1]]


@with_usd
def test_what_an_object_is(tmp_path: Path) -> None:
    cube = 'def Cube "a"\n{\n}\ndef Cube "b"\n{\n}\n'
    labelled = (
        'def Xform "thing" (prepend apiSchemas = ["SemanticsLabelsAPI:class"])\n{\n'
        f'token[] semantics:labels:class = ["Coffee_Table"]\n{cube}}}\n'
        'def Cube "old" (prepend apiSchemas = ["SemanticsAPI:Semantics"])\n{\n'
        'string semantic:Semantics:params:semanticType = "class"\n'
        'string semantic:Semantics:params:semanticData = "rug"\n}\n'
    )
    content = (
        f'def Scope "Furniture"\n{{\n{labelled}def Xform "Big_Chair_02"\n{{\n{cube}}}\n}}\n'
        'def Xform "Kitchen" (kind = "group")\n{\n'
        f'def Xform "Sink" (kind = "component")\n{{\ndef Xform "in"\n{{\n{cube}}}\n}}\n'
        f'def Xform "Mug"\n{{\n{cube}}}\n}}\n'
        'def Cube "guide"\n{\nuniform token purpose = "guide"\n}\n'
        'def Xform "hidden"\n{\ntoken visibility = "invisible"\n' + cube + '}\n'
    )
    scene = load_usd_stage(write_stage(tmp_path, content), WorldOptions(known_classes=['chair']))
    named = {item.name: scene.class_name(item) for item in scene.objects}
    assert named == {
        'thing': 'coffee table',
        'old': 'rug',
        'Big_Chair_02': 'chair',
        'Sink': 'sink',
        'Mug': 'mug',
    }
    sizes = [sum(len(mesh.faces) for mesh in item.meshes) for item in scene.objects]
    assert sorted(sizes) == [12, 24, 24, 24, 24]


def material(name: str, color: str, more: str = '') -> str:
    return (
        f'def Material "{name}"\n{{\n'
        f'token outputs:surface.connect = </World/{name}/s.outputs:surface>\n'
        f'def Shader "s"\n{{\nuniform token info:id = "UsdPreviewSurface"\n{color}\n'
        f'token outputs:surface\n}}\n{more}}}\n'
    )


@with_usd
def test_materials(tmp_path: Path) -> None:
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[0], pixels[1] = (250, 10, 20), (5, 200, 30)
    Image.fromarray(pixels).save(tmp_path / 'wood.png')
    reader = (
        'def Shader "t"\n{\nuniform token info:id = "UsdUVTexture"\n'
        'asset inputs:file = @./wood.png@\n'
        'float2 inputs:st.connect = </World/W/r.outputs:result>\n'
        'float3 outputs:rgb\n}\ndef Shader "r"\n{\n'
        'uniform token info:id = "UsdPrimvarReader_float2"\n'
        'string inputs:varname = "map1"\nfloat2 outputs:result\n}\n'
    )
    uv = (
        'texCoord2f[] primvars:map1 = [(0, 0), (1, 0), (1, 1), (0, 1)] (\n'
        'interpolation = "faceVarying"\n)\n'
    )
    bind = 'rel material:binding = </World/{}>\n'
    api = '(prepend apiSchemas = ["MaterialBindingAPI"])'
    content = (
        material('R', 'color3f inputs:diffuseColor = (0.5, 0, 1)')
        + material('W', 'color3f inputs:diffuseColor.connect = </World/W/t.outputs:rgb>', reader)
        + f'def Cube "red" {api}\n{{\n{bind.format("R")}}}\n'
        + 'def Cube "shown"\n{\ncolor3f[] primvars:displayColor = [(0.2140411, 0, 0)]\n}\n'
        + f'def Mesh "wood" {api}\n{{\n{bind.format("W")}{QUAD}{uv}}}\n'
        + f'def Mesh "both" {api}\n{{\n{bind.format("W")}\n'
        'point3f[] points = [(0, 0, 0), (2, 0, 0), (2, 1, 0), (0, 1, 0)]\n'
        'int[] faceVertexCounts = [3, 3]\nint[] faceVertexIndices = [0, 1, 2, 0, 2, 3]\n'
        f'def GeomSubset "part" {api}\n{{\nuniform token familyName = "materialBind"\n'
        f'uniform token elementType = "face"\nint[] indices = [1]\n{bind.format("R")}}}\n}}\n'
    )
    scene = load_usd_stage(write_stage(tmp_path, content))
    found = {item.name: item.meshes for item in scene.objects}
    # Linear 0.5 is 0.7354 in sRGB (IEC 61966-2-1), linear 0.2140 is 0.5.
    assert found['red'][0].material.base_color == pytest.approx((0.7354, 0, 1), abs=1e-4)
    assert found['shown'][0].material.base_color == pytest.approx((0.5, 0, 0), abs=1e-4)
    (wood,) = found['wood']
    np.testing.assert_array_equal(wood.material.texture, pixels)
    # v counts from the bottom in USD, from the first row here.
    at = {tuple(v[:2]): tuple(t) for v, t in zip(wood.vertices, wood.uv, strict=True)}
    assert at == {(0, 0): (0, 1), (2, 0): (1, 1), (2, 1): (1, 0), (0, 1): (0, 0)}
    part, rest = found['both']
    assert part.material.base_color[0] == pytest.approx(0.7354, abs=1e-4)
    assert rest.material.texture is not None
    assert len(part.faces) == len(rest.faces) == 1
    assert part.vertices[:, 0].min() == 0
    assert part.vertices[:, 1].max() == 1


@with_usd
def test_faces_look_outwards(tmp_path: Path) -> None:
    content = (
        f'def Mesh "plain"\n{{{QUAD}}}\n'
        f'def Mesh "left"\n{{{QUAD}uniform token orientation = "leftHanded"\n}}\n'
        f'def Mesh "mirrored"\n{{{QUAD}double3 xformOp:scale = (-1, 1, 1)\n'
        'uniform token[] xformOpOrder = ["xformOp:scale"]\n}\n'
    )
    for item in load_usd_stage(write_stage(tmp_path, content)).objects:
        (mesh,) = item.meshes
        a, b, c = (mesh.vertices[mesh.faces[:, i]] for i in range(3))
        up = -1 if item.name == 'left' else 1
        assert (np.sign(np.cross(b - a, c - a)[:, 2]) == up).all(), item.name
        np.testing.assert_allclose(mesh.normals[:, 2], up, atol=1e-6)


@with_usd
def test_lights_by_the_area_that_shines(tmp_path: Path) -> None:
    content = (
        'def Cube "c"\n{\n}\n'
        'def SphereLight "bulb"\n{\nfloat inputs:intensity = 100\nfloat inputs:exposure = 1\n'
        'float inputs:radius = 10\ncolor3f inputs:color = (1, 0.5, 0)\n'
        + move(100, 200, 0)
        + '}\n'
        'def SphereLight "cone" (prepend apiSchemas = ["ShapingAPI"])\n{\n'
        'float inputs:intensity = 5\nfloat inputs:radius = 100\n'
        'float inputs:shaping:cone:angle = 40\n}\n'
        'def RectLight "panel"\n{\nfloat inputs:intensity = 10\nfloat inputs:width = 200\n'
        'float inputs:height = 50\n}\n'
        'def DistantLight "sun"\n{\nfloat inputs:intensity = 3\nbool inputs:normalize = true\n'
        'float inputs:angle = 0.53\n}\n'
        'def DomeLight "sky"\n{\n}\n'
    )
    with pytest.warns(OsmabenchWarning, match='sky lights from all sides'):
        scene = load_usd_stage(write_stage(tmp_path, content, 'Y', 0.01))
    lights = {light.name.rpartition('/')[2]: light for light in scene.lights}
    assert lights.keys() == {'bulb', 'cone', 'panel', 'sun'}
    # Radiance L of a disc of area A seen from 1 m gives irradiance L A, and a white diffuse
    # surface the radiance L A / pi.
    bulb = lights['bulb']
    assert bulb.kind is LightKind.POINT
    assert bulb.intensity == pytest.approx(200 * math.pi * 0.1**2 / math.pi)
    assert bulb.color == pytest.approx((1, 0.5, 0))
    assert bulb.position == pytest.approx((1, 0, 2))
    assert lights['cone'].kind is LightKind.SPOT
    assert lights['cone'].spot_half_angle_rad == pytest.approx(math.radians(40))
    assert lights['panel'].intensity == pytest.approx(10 * 2 * 0.5 / math.pi)
    # A light shines along its -z, which is +y of a world that is z up.
    assert lights['panel'].direction == pytest.approx((0, 1, 0))
    assert lights['sun'].intensity == pytest.approx(3 / math.pi)
    assert not lights['sun'].lamp


@with_usd
def test_what_is_missing_is_listed_and_may_be_left_out(tmp_path: Path) -> None:
    content = (
        'def Cube "c"\n{\n}\ndef Xform "gone" (prepend references = @./gone.usda@)\n{\n}\n'
        'def Xform "lost" (prepend references = @./lost.usda@)\n{\n}\n'
    )
    stage = write_stage(tmp_path, content)
    with pytest.raises(
        MissingFileError, match=r'(?s)names 2 files or models.*gone\.usda.*lost\.usda'
    ):
        load_usd_stage(stage)
    import_scene(str(stage), tmp_path / 'out', world=WorldOptions(skip_missing=True))
    loaded = load_scene(str(tmp_path / 'out'))
    assert boxes(loaded) == {'c': [[-1, -1, -1], [1, 1, 1]]}
    assert len(loaded.left_out) == 2


@with_usd
def test_a_file_elsewhere_is_refused(tmp_path: Path) -> None:
    write_stage(tmp_path, 'def Cube "c"\n{\n}\n')
    (tmp_path / 'in').mkdir()
    content = 'def Xform "x" (prepend references = @../room.usda@)\n{\n}\n'
    stage = write_stage(tmp_path / 'in', content)
    with pytest.raises(SceneError, match=r'in/room\.usda: .*room\.usda.* is outside of its'):
        load_usd_stage(stage)


@with_usd
@pytest.mark.parametrize(
    ('content', 'reported'),
    [
        (f'def Mesh "m"\n{{{QUAD.replace("[4]", "[5]")}}}\n', 'World/m has faces without corners'),
        (f'def Mesh "m"\n{{{QUAD.replace("1, 2, 3]", "1, 2, 9]")}}}\n', 'points that are not'),
        (
            f'def Mesh "m"\n{{{QUAD}double3 xformOp:scale = (0, 1, 1)\n'
            'uniform token[] xformOpOrder = ["xformOp:scale"]\n}\n',
            'is scaled by 0',
        ),
        ('def Xform "x"\n{\n}\n', 'no visible models'),
        ('def Cube "x" {', 'not a whole USD file|not a USD file'),
    ],
)
def test_faults_are_named(tmp_path: Path, content: str, reported: str) -> None:
    with pytest.raises(SceneError, match=rf'(?s)room\.usda.*({reported})'):
        load_usd_stage(write_stage(tmp_path, content))
    with pytest.raises(SceneError, match=r'none\.usda does not exist'):
        load_usd_stage(tmp_path / 'none.usda')


def test_without_usd_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('osmabench_ros.scenes.worlds.usd.find_spec', lambda name: None)
    with pytest.raises(MissingDependencyError, match='install .usd-core>='):
        load_usd_stage(write_stage(tmp_path, 'def Cube "c"\n{\n}\n'))
