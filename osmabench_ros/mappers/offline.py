"""Any offline mapping method as a mapper: records frames, runs the method, imports its map.

With the scene's own masks in place of the method's detections, its fusion is scored apart.
"""

import dataclasses
import gzip
import json
import pickle
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from osmabench_ros.base.files import Existing, atomic_directory, check_folder, write_text
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError, MapError, OsmabenchError, RunError, errors_as
from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers import offline_method
from osmabench_ros.mappers.bundled import BundledMapper
from osmabench_ros.maps.importer import ImportOptions, import_map
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.sequences.writer import FolderWriter, SequenceWriter

# What ConceptGraphs calls the detector, in the names of files (`gsa_variant`).
VARIANT = 'true_masks'

SIDE_PX, PATCH_PX = 32, 4
DIMENSION = 64
# Distance of patches, of colours from 0 to 1, at which they hardly resemble each other.
KERNEL_WIDTH = 1.0


class OfflineOptions(Strict):
    """Options of an offline method as a mapper of a run.

    Parameters
    ----------
    method : str
        Name in config/methods, or a YAML file.
    work : Path
        Folder of the run; must not hold a sequence of this scene yet.
    time_limit_s, memory_limit_gib : float
        Resource limits of the method.
    variables : dict of str to str
        Settings of the method.
    scene, condition : str
        For the names of folders and the provenance of the map.
    """

    method: str
    work: Path
    time_limit_s: float = Field(86_400.0, gt=0)
    memory_limit_gib: float = Field(64.0, gt=0)
    variables: dict[str, str] = Field(default_factory=dict)
    scene: str = Field('scene', pattern='^[A-Za-z0-9][A-Za-z0-9._-]*$')
    condition: str = ''


class OfflineMapper(BundledMapper):
    """Makes a mapper of a method that wants the whole sequence first; `seed` is ``${seed}``."""

    def __init__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> None:
        super().__init__(label_set, seed)
        self._run = run = validated(OfflineOptions, options, 'mapper "offline"')
        self._method = method = offline_method.load_method(run.method)
        self.name = method.name
        if bool(method.true_masks) != self.uses_ground_truth:
            right = 'offline_true_masks' if method.true_masks else 'offline'
            raise ConfigError(
                f'method "{method.name}" {"gets" if method.true_masks else "does not read"} the '
                f'masks of the scene; write implementation: {right}'
            )
        self._writer: SequenceWriter | None = None
        self._masks: ConceptGraphsDetections | None = None
        self._intrinsics: Intrinsics | None = None
        self._origin = Pose.identity()
        self._map: SemanticMap | None = None
        self._variables = offline_method.variables_of(method, run.variables)
        self._resources, self._place = ExitStack(), run.work
        check_folder(run.work, Existing.MERGE)
        if self.sequence.exists():
            raise ConfigError(f'{self.sequence} exists; choose another work folder or remove it')

    @property
    def sequence(self) -> Path:
        """Folder of the recorded sequence."""
        return self._place / 'sequences' / self._run.scene

    @property
    def log(self) -> Path:
        """The output of the method."""
        return self._place / f'{self._method.name}.log'

    def integrate(self, frame: Frame) -> None:
        """Record a frame in the method's layout; raises RunError if the method has run already."""
        if self._map is not None:
            raise RunError(f'{self._method.name} has run; it takes no further frames')
        if self._writer is None:
            # The program works in a scratch folder; files that it leaves are listed as ours.
            folder = atomic_directory(self._run.work, Existing.MERGE)
            self._place = self._resources.enter_context(folder)
            self.sequence.parent.mkdir()
            self._writer = FolderWriter(self.sequence, self._method.sequence)
            self._intrinsics = frame.intrinsics
            if self._method.origin == 'first_camera':
                self._origin = frame.camera_pose @ OPTICAL_IN_LINK.inverse()
            if self._method.true_masks:
                self._masks = ConceptGraphsDetections(self.sequence, self.label_set, self.seed)
        self._writer.write(frame)
        if self._masks is not None:
            self._masks.write(frame, self._frames)
        self.count(frame)

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the method's map, before the end an empty partial one; RunError if it fails."""
        if not final:
            run = {'scene': self._run.scene, 'condition': self._run.condition}
            return SemanticMap(self.header(final=False, **run), label_set=self.label_set)
        if self._map is None:
            self._map = self._finish()
        return self._map

    def _finish(self) -> SemanticMap:
        if self._writer is None:
            raise RunError(f'{self._method.name} got no frame, so there is nothing to map')
        place = str(self._place)
        try:
            self._writer.close()
            return self._mapped()
        except OsmabenchError as error:
            text = str(error).replace(place, str(self._run.work))
            raise type(error)(text) from error
        finally:
            self._resources.close()  # also after an error: the files may show its cause
            self._place = self._run.work

    def _mapped(self) -> SemanticMap:
        values = self._values()
        method = self._method
        run = self._run
        output, files, commands, directory, environment = (
            offline_method.filled(getattr(method, key), values, f'method "{method.name}", {key}')
            for key in ('output', 'files', 'commands', 'directory', 'environment')
        )
        (self._place / 'output').mkdir()
        for name, text in files.items():
            write_text(self._place / name, text)
        limits = offline_method.Limits(run.time_limit_s, int(run.memory_limit_gib * 2**30))
        offline_method.run_limited(commands, Path(directory), environment, self.log, limits)
        return self._import(Path(output))

    def _import(self, output: Path) -> SemanticMap:
        method, encoder = self._method, self._method.text_encoder
        options = ImportOptions(
            world=method.sequence.world,
            pose=self._origin,
            label_set=self.label_set,
            scene=self._run.scene,
            condition=self._run.condition,
            frames_used=self._frames,
            feature_model=encoder.model if encoder else '',
            feature_pretrained=encoder.pretrained if encoder else '',
            text_comparable=False if method.true_masks else None,
        )
        with errors_as(MapError, f'{method.name} ran, but left no usable map', MapError):
            made = import_map(method.importer, output, options)
        poses, remark = made.trajectory, made.header.remark
        if poses is not None and len(poses) < self._frames:
            found = f'{method.name} found the poses of {len(poses)} of {self._frames} frames'
            remark = f'{found}; {remark}' if remark else found
        header = dataclasses.replace(made.header, stamp_ns=self._stamp_ns, remark=remark)
        return dataclasses.replace(made, header=header)

    def _values(self) -> dict[str, str]:
        camera = self._intrinsics
        assert camera is not None
        numbers = {name: str(value) for name, value in dataclasses.asdict(camera).items()}
        work = self._place.resolve()
        return {
            **self._variables,
            **numbers,
            'pixels': str(camera.width * camera.height),
            'work': str(work),
            'sequence': str(self.sequence.resolve()),
            'dataset': str(self.sequence.parent.resolve()),
            'scene': self._run.scene,
            'output': str(work / 'output'),
            'seed': str(self.seed),
            'frames': str(self._frames),
            'depth_scale': str(self._method.sequence.depth_scale),
        }


class TrueMasksMapper(OfflineMapper):
    """The same for methods that get the scene's own masks."""

    uses_ground_truth = True


# The mappers of these names in a configuration; their options are `OfflineOptions`.
offline, offline_true_masks = OfflineMapper, TrueMasksMapper


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
    vector for each class, so that features contain no more than the pixels and the names.
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
        boxes = []
        rows = []
        masks = []
        features = []
        for number, (class_id, _) in enumerate(objects.tolist()):
            if class_id == UNLABELLED:
                continue
            mask = numbers == number
            down = np.flatnonzero(mask.any(axis=1))
            right = np.flatnonzero(mask.any(axis=0))
            top = down[0]
            bottom = down[-1] + 1
            left = right[0]
            end = right[-1] + 1
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
