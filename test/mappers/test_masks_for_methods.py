"""The scripts that put the scene's masks where the networks of BBQ and HOV-SG would be."""

import json

import numpy as np
import pytest
from support.libraries import needs
from support.programs import run_python
from support.world.masks import map_true_masks

from osmabench_ros.mappers.offline_method import load_method

pytestmark = needs('torch')

# The calls of the networks in BBQ's main.py, without the steps between them.
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


def test_masks_and_features_are_those_of_the_frames_that_bbq_reads(tmp_path):
    (tmp_path / 'bbq').mkdir()
    (tmp_path / 'bbq' / '__init__.py').touch()
    (tmp_path / 'main.py').write_text(MAIN)
    made = map_true_masks('bbq_true_masks', tmp_path, frames=6)
    # Frames 0 and 5, with two chairs, a table and a wall each.
    assert len(made.graph.nodes) == 8
    assert [node.observations for node in made.graph.nodes] == [1] * 8
    space = made.feature_spaces['dino']
    assert not space.text_comparable
    np.testing.assert_allclose(np.linalg.norm(space.vectors, axis=1), 1.0, atol=1e-4)


OVERLAPS = """
import itertools, json, math, sys
import stand_ins, torch

unit = torch.tensor(list(itertools.product((-0.5, 0.5), repeat=3)))
turn = math.sqrt(0.5) * torch.tensor([[1.0, -1, 0], [1, 1, 0], [0, 0, math.sqrt(2)]])
others = [unit, unit + 0.5, unit + torch.tensor([0.25, 0, 0]), unit / 2, unit @ turn.T, unit + 3]
common, iou = stand_ins.box3d_overlap(torch.stack([unit, unit + 3]), torch.stack(others))
same = torch.ones(1, 4).cuda(0) if torch.cuda.is_available() is False else None
print(json.dumps([common.tolist(), iou.tolist(), same is None or same.device.type == 'cpu']))
"""


@pytest.mark.full
def test_boxes_overlap_as_much_as_geometry_says(tmp_path):
    (tmp_path / 'stand_ins.py').write_text(load_method('bbq_true_masks').files['stand_ins.py'])
    (tmp_path / 'overlaps.py').write_text(OVERLAPS)
    done = run_python('overlaps.py', cwd=tmp_path, check=True)
    *named, result = done.stdout.splitlines()
    assert all(line.startswith('stand-in for ') for line in named)
    common, iou, on_the_cpu = json.loads(result)
    octagon = 2 * (2**0.5 - 1)  # what two squares have in common, one of them turned by 45 degrees
    expected = [1.0, 0.125, 0.75, 0.125, octagon, 0.0]
    np.testing.assert_allclose(common[0], expected, atol=1e-5)
    second = [1.0, 1.0, 1.0, 0.125, 1.0, 1.0]
    shares = [c / (1 + v - c) for c, v in zip(expected, second, strict=True)]
    np.testing.assert_allclose(iou[0], shares, atol=1e-5)
    np.testing.assert_allclose(common[1], [0, 0, 0, 0, 0, 1], atol=1e-5)
    assert on_the_cpu


# The calls of the networks in HOV-SG, without the steps between them.
PROGRAM = """
import json, os, sys
import matplotlib.pyplot as plt, numpy as np, torch, torchvision
import open_clip
from PIL import Image
from hovsg.utils.constants import CLIP_DIM
from segment_anything import SamAutomaticMaskGenerator, SamPredictor, sam_model_registry

assert __name__ == '__main__'
plt.switch_backend('TkAgg')
given = dict(item.split('=') for item in sys.argv[1:])
sequence, output = given['main.dataset_path'], given['main.save_path']
camera = json.load(open(os.path.join(os.path.dirname(sequence), 'cam_params.json')))['camera']
model, _, preprocess = open_clip.create_model_and_transforms('ViT-H-14', pretrained='x')
model.eval()
sam = sam_model_registry['vit_h'](checkpoint='x')
sam.to(device='cpu')
generator = SamAutomaticMaskGenerator(model=sam, points_per_side=12)
os.makedirs(os.path.join(output, 'replica', 'objects'))
features, count = [], 0
for index in range(0, 11, int(given['pipeline.skip_frames'])):
    image = np.array(Image.open(os.path.join(sequence, 'results', f'frame{index:06d}.jpg')))
    assert image.shape[:2] == (camera['h'], camera['w'])
    for mask in generator.generate(image):
        x, y, w, h = (int(value) for value in mask['bbox'])
        seen = np.argwhere(mask['segmentation'])
        assert [y, x] == seen.min(axis=0).tolist()
        assert [y + h, x + w] == (seen.max(axis=0) + 1).tolist()
        crop = preprocess(Image.fromarray(image[y : y + h, x : x + w]))[None].cuda()
        with torch.no_grad():
            feature = torch.zeros(CLIP_DIM['ViT-H-14'], device='cuda')
            feature += model.encode_image(crop)[0]
        features.append(feature.cpu())
        rows = [f'{row} {column} {index}' for row, column in seen]
        head = ['ply', 'format ascii 1.0', f'element vertex {len(rows)}']
        head += [f'property float {axis}' for axis in 'xyz'] + ['end_header']
        with open(os.path.join(output, 'replica', 'objects', f'pcd_{count}.ply'), 'w') as file:
            file.write('\\n'.join([*head, *rows, '']))
        count += 1
torch.save(torch.stack(features), os.path.join(output, 'replica', 'mask_feats.pt'))
"""


@pytest.mark.full
@needs('torchmetrics', 'matplotlib')
def test_masks_and_features_are_those_of_the_frames_that_hovsg_reads(tmp_path):
    (tmp_path / 'application').mkdir()
    (tmp_path / 'application' / 'semantic_segmentation.py').write_text(PROGRAM)
    (tmp_path / 'hovsg' / 'utils').mkdir(parents=True)
    (tmp_path / 'hovsg' / '__init__.py').touch()
    (tmp_path / 'hovsg' / 'utils' / 'constants.py').write_text("CLIP_DIM = {'ViT-H-14': 1024}\n")
    made = map_true_masks('hovsg_true_masks', tmp_path, frames=11)
    # Frames 0 and 10, with two chairs, a table and a wall each.
    assert len(made.graph.nodes) == 8
    space = made.feature_spaces['clip']
    assert not space.text_comparable
    assert space.vectors.shape == (8, 64)
    # The same pixels have the same features.
    np.testing.assert_allclose(space.vectors[:4], space.vectors[4:], atol=1e-4)
