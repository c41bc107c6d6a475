"""USD stages as scenes, held to positions and colours by hand."""

import importlib.util
import math

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
from osmabench_ros.scenes.scene import LightKind
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


def write_stage(folder, content, up='Z', unit_m=1.0):
    path = folder / 'room.usda'
    path.write_text(
        f'#usda 1.0\n(\n defaultPrim = "World"\n upAxis = "{up}"\n metersPerUnit = {unit_m}\n)\n'
        f'def Xform "World"\n{{\n{content}\n}}\n'
    )
    return path


def prim(kind, name, *lines, meta=''):
    body = '\n'.join(lines)
    return f'def {kind} "{name}" {f"({meta})" if meta else ""}\n{{\n{body}\n}}\n'


def schema(name):
    return f'prepend apiSchemas = ["{name}"]'


def boxes(scene):
    return {
        item.name: (np.round([item.box.minimum, item.box.maximum], 4) + 0.0).tolist()
        for item in scene.objects
    }


def place(kind, vector):
    order = f'uniform token[] xformOpOrder = ["xformOp:{kind}"]'
    return f'double3 xformOp:{kind} = {vector}\n{order}\n'


@with_usd
def test_centimetres_and_y_up_become_metres_and_z_up(tmp_path):
    size = 'double radius = 10\ndouble height = 100\nuniform token axis = '
    seat = prim('Cube', 'seat', 'double size = 40')
    content = (
        prim('Xform', 'Chair_01', place('translate', (100, 50, -30)), seat)
        + prim('Cylinder', 'Lamp', f'{size}"Y"', place('translate', (0, 50, 0)))
        + prim('Capsule', 'Bone', f'{size}"X"')
    )
    found = boxes(load_usd_stage(write_stage(tmp_path, content, 'Y', 0.01)))
    assert found['Chair_01'] == [[0.8, 0.1, 0.3], [1.2, 0.5, 0.7]]
    assert found['Lamp'] == [[-0.1, -0.1, 0], [0.1, 0.1, 1]]
    assert found['Bone'] == [[-0.6, -0.1, -0.1], [0.6, 0.1, 0.1]]


@with_usd
def test_what_an_object_is(tmp_path):
    cube = prim('Cube', 'a') + prim('Cube', 'b')
    label = 'token[] semantics:labels:class = ["Coffee_Table"]'
    older = 'string semantic:Semantics:params:semantic'
    furniture = (
        prim('Xform', 'thing', label, cube, meta=schema('SemanticsLabelsAPI:class')),
        prim('Cube', 'old', f'{older}Type = "class"', f'{older}Data = "rug"',
             meta=schema('SemanticsAPI:Semantics')),
        prim('Xform', 'Big_Chair_02', cube),
    )  # fmt: skip
    sink = prim('Xform', 'Sink', prim('Xform', 'in', cube), meta='kind = "component"')
    content = (
        prim('Scope', 'Furniture', *furniture)
        + prim('Xform', 'Kitchen', sink, prim('Xform', 'Mug', cube), meta='kind = "group"')
        + prim('Cube', 'guide', 'uniform token purpose = "guide"')
        + prim('Xform', 'hidden', 'token visibility = "invisible"', cube)
    )
    scene = load_usd_stage(write_stage(tmp_path, content), WorldOptions(known_classes=['chair']))
    named = {item.name: scene.class_name(item) for item in scene.objects}
    assert named == {
        'thing': 'coffee table', 'old': 'rug', 'Big_Chair_02': 'chair', 'Sink': 'sink',
        'Mug': 'mug',
    }  # fmt: skip
    sizes = [sum(len(mesh.faces) for mesh in item.meshes) for item in scene.objects]
    assert sorted(sizes) == [12, 24, 24, 24, 24]


def material(name, color, more=''):
    kind = 'uniform token info:id = "UsdPreviewSurface"'
    shader = prim('Shader', 's', kind, color, 'token outputs:surface')
    surface = f'token outputs:surface.connect = </World/{name}/s.outputs:surface>'
    return prim('Material', name, surface, shader, more)


@with_usd
def test_materials(tmp_path):
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[0], pixels[1] = (250, 10, 20), (5, 200, 30)
    Image.fromarray(pixels).save(tmp_path / 'wood.png')
    reader = """
        def Shader "t" {
            uniform token info:id = "UsdUVTexture"
            asset inputs:file = @./wood.png@
            float2 inputs:st.connect = </World/W/r.outputs:result>
            float3 outputs:rgb
        }
        def Shader "r" {
            uniform token info:id = "UsdPrimvarReader_float2"
            string inputs:varname = "map1"
            float2 outputs:result
        }"""
    uv = """texCoord2f[] primvars:map1 = [(0, 0), (1, 0), (1, 1), (0, 1)] (
        interpolation = "faceVarying")"""
    red, wooden = (f'rel material:binding = </World/{name}>' for name in 'RW')
    triangles = QUAD.replace('[4]', '[3, 3]').replace('[0, 1, 2, 3]', '[0, 1, 2, 0, 2, 3]')
    subset = """uniform token familyName = "materialBind"
        uniform token elementType = "face"
        int[] indices = [1]"""
    api = schema('MaterialBindingAPI')
    part = prim('GeomSubset', 'part', subset, red, meta=api)
    content = (
        material('R', 'color3f inputs:diffuseColor = (0.5, 0, 1)')
        + material('W', 'color3f inputs:diffuseColor.connect = </World/W/t.outputs:rgb>', reader)
        + prim('Cube', 'red', red, meta=api)
        + prim('Cube', 'shown', 'color3f[] primvars:displayColor = [(0.2140411, 0, 0)]')
        + prim('Mesh', 'wood', wooden, QUAD, uv, meta=api)
        + prim('Mesh', 'both', wooden, triangles, part, meta=api)
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
def test_faces_look_outwards(tmp_path):
    content = (
        prim('Mesh', 'plain', QUAD)
        + prim('Mesh', 'left', QUAD, 'uniform token orientation = "leftHanded"')
        + prim('Mesh', 'mirrored', QUAD, place('scale', (-1, 1, 1)))
    )
    for item in load_usd_stage(write_stage(tmp_path, content)).objects:
        (mesh,) = item.meshes
        a, b, c = (mesh.vertices[mesh.faces[:, i]] for i in range(3))
        up = -1 if item.name == 'left' else 1
        assert (np.sign(np.cross(b - a, c - a)[:, 2]) == up).all(), item.name
        np.testing.assert_allclose(mesh.normals[:, 2], up, atol=1e-6)


@with_usd
def test_lights_by_the_area_that_shines(tmp_path):
    def light(kind, name, *more, meta='', **inputs):
        values = (f'float inputs:{key} = {value}' for key, value in inputs.items())
        return prim(kind, name, *values, *more, meta=meta)

    color, angle = 'color3f inputs:color = (1, 0.5, 0)', 'float inputs:shaping:cone:angle = 40'
    bulb = {'intensity': 100, 'exposure': 1, 'radius': 10}
    cone = {'intensity': 5, 'radius': 100, 'meta': schema('ShapingAPI')}
    content = (
        prim('Cube', 'c')
        + light('SphereLight', 'bulb', color, place('translate', (100, 200, 0)), **bulb)
        + light('SphereLight', 'cone', angle, **cone)
        + light('RectLight', 'panel', intensity=10, width=200, height=50)
        + light('DistantLight', 'sun', 'bool inputs:normalize = true', intensity=3, angle=0.53)
        + prim('DomeLight', 'sky')
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
def test_what_is_missing_is_listed_and_may_be_left_out(tmp_path):
    content = prim('Cube', 'c')
    for name in ('gone', 'lost'):
        content += prim('Xform', name, meta=f'prepend references = @./{name}.usda@')
    stage = write_stage(tmp_path, content)
    missing = r'(?s)names 2 files or models.*gone\.usda.*lost\.usda'
    with pytest.raises(MissingFileError, match=missing):
        load_usd_stage(stage)
    import_scene(str(stage), tmp_path / 'out', world=WorldOptions(skip_missing=True))
    loaded = load_scene(str(tmp_path / 'out'))
    assert boxes(loaded) == {'c': [[-1, -1, -1], [1, 1, 1]]}
    assert len(loaded.left_out) == 2


@with_usd
def test_a_file_elsewhere_is_refused(tmp_path):
    write_stage(tmp_path, prim('Cube', 'c'))
    (tmp_path / 'in').mkdir()
    content = prim('Xform', 'x', meta='prepend references = @../room.usda@')
    stage = write_stage(tmp_path / 'in', content)
    with pytest.raises(SceneError, match=r'in/room\.usda: .*room\.usda.* is outside of its'):
        load_usd_stage(stage)


@with_usd
@pytest.mark.parametrize(
    ('content', 'reported'),
    [
        (prim('Mesh', 'm', QUAD.replace('[4]', '[5]')), 'World/m has faces without corners'),
        (prim('Mesh', 'm', QUAD.replace('1, 2, 3]', '1, 2, 9]')), 'points that are not'),
        (prim('Mesh', 'm', QUAD, place('scale', (0, 1, 1))), 'is scaled by 0'),
        (prim('Xform', 'x'), 'no visible models'),
        ('def Cube "x" {', 'not a whole USD file|not a USD file'),
    ],
)
def test_faults_are_named(tmp_path, content, reported):
    with pytest.raises(SceneError, match=rf'(?s)room\.usda.*({reported})'):
        load_usd_stage(write_stage(tmp_path, content))
    with pytest.raises(SceneError, match=r'none\.usda does not exist'):
        load_usd_stage(tmp_path / 'none.usda')


def test_without_usd_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr('osmabench_ros.scenes.worlds.usd.find_spec', lambda name: None)
    with pytest.raises(MissingDependencyError, match='install .usd-core>='):
        load_usd_stage(write_stage(tmp_path, prim('Cube', 'c')))
