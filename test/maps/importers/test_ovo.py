from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, CLIP
from support.libraries import Lazy, needs

from osmabench_ros.errors import MapError
from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.ovo import import_map

pytestmark = needs('torch')
torch = Lazy('torch')
OWNERS = np.repeat([-1, 4, 9, 4], 10)


def write(folder: Path, **changes: object) -> Path:
    """Write ovo_map.ckpt as OVO does: a legacy torch file of two dictionaries."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        'map_params': {
            'xyz': torch.from_numpy(CHAIR).float(),
            'obj_ids': torch.from_numpy(OWNERS),
            'ids': torch.arange(len(CHAIR)),
            'max_id': len(CHAIR),
            'color': torch.full((len(CHAIR), 3), 120, dtype=torch.uint8),
        },
        'ovo_map_params': {
            'ins_3d_ids': np.asarray([4, 9]),
            'ins3d_4_clip_feature': torch.from_numpy(CLIP[:1]),
            'ins3d_4_clip_feature_kf': 7,
            'ins3d_9_clip_feature': None,
            'ins3d_9_clip_feature_kf': None,
        },
    }
    data.update(changes)
    torch.save(data, folder / 'ovo_map.ckpt', _use_new_zipfile_serialization=False)
    return folder / 'ovo_map.ckpt'


def test_instances_and_features_come_out(tmp_path: Path) -> None:
    write(tmp_path / 'in')
    write_map(import_map(tmp_path / 'in', ImportOptions()), tmp_path / 'map')
    made = read_map(tmp_path / 'map')
    assert [node.source_id for node in made.graph.nodes] == ['4', '9']
    assert [node.feature_row for node in made.graph.nodes] == [0, None]
    assert made.extras['map_params']['max_id'] == len(CHAIR)
    assert made.extras['ovo_map_params']['ins3d_4_clip_feature_kf'] == 7
    np.testing.assert_array_equal(made.feature_spaces['clip'].vectors, CLIP[:1])
    assert made.dense is not None
    assert made.dense.instances is not None
    assert made.dense.instances.tolist() == np.repeat([0, 1, 2, 1], 10).tolist()
    np.testing.assert_allclose(made.dense.points, CHAIR, rtol=1e-6)
    assert made.dense.colors is not None
    assert (made.dense.colors == 120).all()


@pytest.mark.parametrize(
    ('length', 'model'), [(1024, 'PE-Core-L-14-336'), (1152, 'ViT-SO400M-14-SigLIP-384')]
)
def test_the_encoder_follows_from_the_length_of_the_features(
    tmp_path: Path, length: int, model: str
) -> None:
    feature = {'ins_3d_ids': np.asarray([4]), 'ins3d_4_clip_feature': torch.ones(1, length)}
    made = import_map(write(tmp_path, ovo_map_params=feature), ImportOptions())
    assert made.feature_spaces['clip'].model == model


def test_an_encoder_can_be_named(tmp_path: Path) -> None:
    options = ImportOptions(feature_model='ViT-H-14-378', feature_pretrained='dfn5b')
    space = import_map(write(tmp_path), options).feature_spaces['clip']
    assert (space.model, space.pretrained) == ('ViT-H-14-378', 'dfn5b')


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'map_params': 3}, 'does not hold "map_params"'),
        ({'map_params': {'obj_ids': 1}}, 'the tensor "xyz"'),
        (
            {'map_params': lambda: {'xyz': torch.ones(3, 3), 'obj_ids': torch.ones(2)}},
            r'"xyz" is \(3, 3\)',
        ),
    ],
)
def test_malformed_files_are_named(tmp_path: Path, changes: dict, message: str) -> None:
    made = {name: value() if callable(value) else value for name, value in changes.items()}
    with pytest.raises(MapError, match=message):
        import_map(write(tmp_path, **made), ImportOptions())
