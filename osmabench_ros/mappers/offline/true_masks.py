"""The scene's own masks as the detections of a method: its fusion apart from its detector."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from osmabench_ros.errors import RunError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

VARIANT = 'true_masks'
"""What ConceptGraphs calls the detector, in the names of files (`gsa_variant`)."""

SIDE_PX, PATCH_PX = 32, 4
DIMENSION = 64
KERNEL_WIDTH = 1.0
"""Distance of patches, of colours from 0 to 1, at which they hardly resemble each other."""


class PatchFeatures:
    """A small random encoder: features of a kernel between patches, averaged over a mask.

    A crop is scaled to 32x32 and cut into patches x of 4x4 pixels; the feature is the mean of
    cos(W x + b) over the patches that lie in the mask, with normal W and uniform b, at unit
    length. Rahimi and Recht, Random Features for Large-Scale Kernel Machines, NIPS 2007.
    """

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._weights = rng.normal(0, 1 / KERNEL_WIDTH, (3 * PATCH_PX**2, DIMENSION))
        self._shift = rng.uniform(0, 2 * np.pi, DIMENSION)

    def of(self, color: NDArray[np.uint8], mask: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the feature (64,) of a crop (H, W, 3) and its mask (H, W)."""
        size = (SIDE_PX, SIDE_PX)
        pixels = np.asarray(Image.fromarray(color).resize(size, Image.Resampling.BILINEAR))
        inside = np.asarray(Image.fromarray(mask).resize(size, Image.Resampling.NEAREST))
        shares = _patches(inside[..., None]).mean(axis=1)
        used = shares >= min(0.5, shares.max())
        waves = np.cos(_patches(pixels / 255.0)[used] @ self._weights + self._shift)
        mean = waves.mean(axis=0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9), np.float32)


def _patches(image: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return the patches of an image (32, 32, C) as rows, shape (64, 16 C)."""
    count, channels = SIDE_PX // PATCH_PX, image.shape[-1]
    cut = image.astype(np.float64).reshape(count, PATCH_PX, count, PATCH_PX, channels)
    return cut.swapaxes(1, 2).reshape(count**2, PATCH_PX**2 * channels)


class ConceptGraphsDetections:
    """Writes a frame's objects as `generate_gsa_results.py` of ConceptGraphs leaves detections.

    ``gsa_detections_true_masks/frame000000.pkl.gz`` in the folder of the sequence holds boxes
    `xyxy` (N, 4), `confidence` (N,), `class_id` (N,), `mask` (N, H, W), the names `classes`,
    `image_feats` and `text_feats` (N, 64); ``gsa_classes_true_masks.json`` the names. Masks and
    names are the truth. Image features are random ones of the pixels, text features a random
    vector for each class, so that features say what the pixels and the names do and no more.
    """

    def __init__(self, sequence: Path, label_set: LabelSet, seed: int) -> None:
        self._folder = sequence / f'gsa_detections_{VARIANT}'
        self._folder.mkdir()
        self._classes = [item.name for item in label_set.classes]
        self._rows = {item.id: row for row, item in enumerate(label_set.classes)}
        self._features = PatchFeatures(seed)
        vectors = np.random.default_rng([seed, 1]).normal(size=(len(self._classes), DIMENSION))
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        self._text = (vectors / lengths).astype(np.float32)
        names = json.dumps(self._classes)
        (sequence / f'gsa_classes_{VARIANT}.json').write_text(names, encoding='utf-8')

    def write(self, frame: Frame, index: int) -> None:
        """Write the detections of a frame; RunError without its ground-truth images."""
        if frame.semantic is None or frame.instance is None:
            raise RunError(
                f'frame {frame.index} lacks the semantic or the instance image that masks of the '
                'scene are made of; use a simulator or a sequence that has both'
            )
        pairs = np.stack([frame.semantic.astype(np.int64), frame.instance.astype(np.int64)], -1)
        objects, numbers = np.unique(pairs.reshape(-1, 2), axis=0, return_inverse=True)
        numbers = numbers.reshape(frame.semantic.shape)
        boxes, rows, masks, features = [], [], [], []
        for number, (class_id, _) in enumerate(objects.tolist()):
            if class_id == UNLABELLED:
                continue
            mask = numbers == number
            down, right = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
            top, bottom, left, end = down[0], down[-1] + 1, right[0], right[-1] + 1
            boxes.append((left, top, end, bottom))
            rows.append(self._rows[class_id])
            masks.append(mask)
            cut = slice(top, bottom), slice(left, end)
            features.append(self._features.of(frame.color[cut], mask[cut]))
        data = {
            'xyxy': np.array(boxes, np.float32).reshape(-1, 4),
            'confidence': np.ones(len(rows), np.float32),
            'class_id': np.array(rows, np.int64),
            'mask': np.array(masks, bool).reshape(-1, *frame.semantic.shape),
            'classes': self._classes,
            'image_crops': [None] * len(rows),
            'image_feats': np.array(features, np.float32).reshape(-1, DIMENSION),
            'text_feats': self._text[rows],
        }
        with gzip.open(self._folder / f'frame{index:06d}.pkl.gz', 'wb', compresslevel=1) as file:
            pickle.dump(data, file)
