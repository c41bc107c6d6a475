"""The script that puts the scene's masks where the networks of HOV-SG would be."""

import numpy as np
import pytest
from support.libraries import needs
from support.world.masks import map_true_masks

# To import them here would cost every worker of the tests seconds.
pytestmark = needs('torch', 'torchmetrics', 'matplotlib')

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
