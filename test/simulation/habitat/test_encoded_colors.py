import numpy as np
import trimesh

from osmabench_ros.simulation.habitat.worker.encoded_colors import write_with_encoded_colors


def export(path, factor):
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=factor)
    visual = trimesh.visual.TextureVisuals(uv=np.zeros((8, 2)), material=material)
    mesh = trimesh.Trimesh(**trimesh.creation.box().to_dict(), process=False)
    mesh.visual = visual
    mesh.export(path)


def test_only_the_colour_changes(tmp_path):
    asset, copy = tmp_path / 'a.glb', tmp_path / 'copies' / 'b.glb'
    export(asset, [0.2, 0.0, 1.0, 1.0])
    before = asset.read_bytes()
    assert write_with_encoded_colors(str(asset), str(copy))
    assert asset.read_bytes() == before
    ours, theirs = (trimesh.load(path, force='mesh', process=False) for path in (asset, copy))
    np.testing.assert_array_equal(ours.vertices, theirs.vertices)
    np.testing.assert_array_equal(ours.faces, theirs.faces)
    # 0.2 linear is 0.4845 encoded (IEC 61966-2-1), 124 of 255; 0 and 1 are fixed points.
    assert theirs.visual.material.baseColorFactor.tolist() == [124, 0, 255, 255]


def test_white_assets_and_other_files_are_not_copied(tmp_path):
    asset, copy = tmp_path / 'a.glb', tmp_path / 'b.glb'
    export(asset, [1.0, 1.0, 1.0, 1.0])
    assert not write_with_encoded_colors(str(asset), str(copy))
    for content in (b'', b'glTF', b'PK\x03\x04' + b'\0' * 40):
        asset.write_bytes(content)
        assert not write_with_encoded_colors(str(asset), str(copy))
    assert not copy.exists()
