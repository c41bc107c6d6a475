"""The script that puts the scene's masks where BeyondBareQueries' networks would be."""

import sys
from pathlib import Path

import numpy as np
import pytest
from mappers.test_true_masks import LABELS, furnished

from osmabench_ros.mappers.mapper import make_mapper

pytest.importorskip('torch')

# What main.py of BBQ does with its networks, and nothing of what it does between them.
MAIN = """
import gzip, os, pickle, random
import numpy as np, torch, yaml
from bbq.models import ClassAgnosticMaskGenerator, DINOFeaturesExtractor

def set_seed(seed): assert seed == 4

class NodesConstructor:
    def project(self, poses): raise AssertionError('views are for captions')
    def describe(self, colors): raise AssertionError('captions come from a network')

def main(args):
    config = yaml.full_load(open(args.config_path))
    assert args.save_path is None
    nodes = config['nodes_constructor']
    masks = ClassAgnosticMaskGenerator(**nodes['mask_generator'])
    features = DINOFeaturesExtractor(**nodes['dino_generator'])
    objects = []
    for index in range(0, 6, config['dataset']['stride']):
        found, image = masks(None), features(None)
        for box, mask, sure in zip(found['xyxy'], found['mask'], found['confidence']):
            assert sure == 1.0
            points = np.argwhere(mask).astype(float)
            feature = image[torch.from_numpy(mask)].mean(dim=0, keepdim=True).numpy()
            objects.append({
                'pcd_np': np.c_[points, np.full(len(points), index)], 'descriptor': feature,
                'bbox_np': np.zeros((8, 3)), 'num_detections': 1, 'id': [index],
            })
    constructor = NodesConstructor()
    constructor.project(poses=None)
    assert constructor.describe(colors=None) == []
    with gzip.open(os.path.join(nodes['output_path'], 'now_map.pkl.gz'), 'wb') as file:
        pickle.dump({'objects': objects}, file)
"""


def test_masks_and_features_are_those_of_the_frames_that_bbq_reads(tmp_path: Path) -> None:
    (tmp_path / 'bbq').mkdir()
    (tmp_path / 'bbq' / '__init__.py').touch()
    (tmp_path / 'main.py').write_text(MAIN)
    options = {
        'method': 'bbq_true_masks', 'work': str(tmp_path / 'work'),
        'variables': {'python': sys.executable, 'root': str(tmp_path)},
    }  # fmt: skip
    mapper = make_mapper('offline_true_masks', label_set=LABELS, seed=4, options=options)
    for index in range(6):
        mapper.integrate(furnished(index))
    made = mapper.semantic_map(final=True)
    # Frames 0 and 5, with two chairs, a table and a wall each.
    assert len(made.graph.nodes) == 8
    assert [node.observations for node in made.graph.nodes] == [1] * 8
    space = made.feature_spaces['dino']
    assert not space.text_comparable
    np.testing.assert_allclose(np.linalg.norm(space.vectors, axis=1), 1.0, atol=1e-4)
