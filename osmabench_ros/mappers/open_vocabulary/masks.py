"""Masks of everything or of the names in a text, and pixels of fixed classes, by networks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from osmabench_ros.errors import ConfigError, MissingDependencyError
from osmabench_ros.mappers.open_vocabulary import features
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet, normalised_name


def class_ids(
    network_classes: Mapping[int, str], label_set: LabelSet, names: Mapping[str, str]
) -> NDArray[np.int32]:
    """Return the class of the label set for each class of a network, UNLABELLED without one.

    Parameters
    ----------
    network_classes : mapping of int to str
        Names by the network's own ids from 0; one may list synonyms, ``'floor, flooring'``.
    label_set : LabelSet
        Classes of the scene.
    names : mapping of str to str
        Name in the label set by name of the network, where the two are spelt differently.

    Returns
    -------
    ndarray of int32, shape (classes of the network,)

    Raises
    ------
    ConfigError
        If `names` has a class that the network or the label set does not know, or nothing fits.
    """
    given = {normalised_name(own): scene for own, scene in names.items()}
    table = np.full(max(network_classes, default=-1) + 1, UNLABELLED, np.int32)
    used = set()
    for row, full_name in network_classes.items():
        synonyms = [normalised_name(part) for part in (full_name, *full_name.split(','))]
        own = next((name for name in synonyms if name in given), None)
        if own is not None:
            used.add(own)
            table[row] = label_set.id_of(given[own])
            if table[row] == UNLABELLED:
                raise ConfigError(
                    f'names: "{own}": the scene has no class "{given[own]}"; it has '
                    f'{", ".join(item.name for item in label_set.classes)}'
                )
        else:
            known = (label_set.id_of(name) for name in synonyms)
            table[row] = next((item for item in known if item != UNLABELLED), UNLABELLED)
    if unknown := sorted(given.keys() - used):
        raise ConfigError(f'names: the network has no class "{unknown[0]}"')
    if not (table != UNLABELLED).any():
        raise ConfigError(
            f'no class of the network is one of label set "{label_set.name}"; say under names '
            'which is which'
        )
    return table


class SemanticNetwork:
    """Labels every pixel with a class of the scene."""

    def __init__(
        self,
        source: features.NetworkSource,
        label_set: LabelSet,
        names: Mapping[str, str],
        runtime: features.Runtime,
    ) -> None:
        self._model: Any = runtime.model('AutoModelForSemanticSegmentation', source)
        self._processor = features.load('AutoImageProcessor', source)
        self._runtime = runtime
        classes = {int(row): str(name) for row, name in self._model.config.id2label.items()}
        self._class_ids = class_ids(classes, label_set, names)
        self.models = {'segmentation': features.version(self._model, source)}

    def label(self, color: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Return the class (height, width) of each pixel of an RGB image, or UNLABELLED."""
        inputs = self._processor(images=Image.fromarray(color), return_tensors='pt')
        outputs = self._runtime.run(self._model, inputs)
        [image] = self._processor.post_process_semantic_segmentation(
            outputs, target_sizes=[color.shape[:2]]
        )
        return np.asarray(self._class_ids[np.asarray(image.cpu())])


@dataclass(frozen=True, eq=False)
class FoundMasks:
    """Masks (K, height, width), confidences (K,), and K names, '' where there is none."""

    masks: NDArray[np.bool_]
    confidences: NDArray[np.float32]
    names: tuple[str, ...]


class MaskFinder(Protocol):
    """Finds masks in an RGB image (height, width, 3)."""

    # Networks with their revisions, for the provenance.
    models: dict[str, str]

    def find(self, color: NDArray[np.uint8]) -> FoundMasks:
        """Return the masks of an image."""
        ...


def mask_finder(
    masks: features.NetworkSource,
    detector: features.NetworkSource | None,
    prompts: Sequence[str],
    min_confidence: float,
    runtime: features.Runtime,
) -> MaskFinder:
    """Make the finder that fits the networks; ConfigError if the architecture is not known.

    With a detector by text (Grounding DINO, OWL) its boxes ask a network of the SAM family for
    masks; without one that network masks everything, as does one of the Mask2Former family.
    """
    from transformers.models.auto import modeling_auto

    architecture = features.model_type(masks)
    promptable = architecture in modeling_auto.MODEL_FOR_MASK_GENERATION_MAPPING_NAMES
    if detector is not None:
        if not promptable:
            raise ConfigError(
                f'"{masks.name}" ({architecture}) cannot mask the boxes of a detector; give a '
                'network of the SAM family as masks, or no detector'
            )
        return PromptedMasks(masks, detector, prompts, min_confidence, runtime)
    if promptable:
        return GeneratedMasks(masks, runtime)
    if architecture in ('mask2former', 'maskformer', 'eomt', 'eomt_dinov3'):
        return SegmentedMasks(masks, min_confidence, runtime)
    raise ConfigError(
        f'"{masks.name}" ({architecture}) finds no masks; give a network of the SAM, Mask2Former, '
        'MaskFormer or EoMT family'
    )


class GeneratedMasks:
    """Masks of everything, grown from a grid of points by a network of the SAM family."""

    def __init__(self, source: features.NetworkSource, runtime: features.Runtime) -> None:
        # Its doubles are found by code of torchvision, deep in the first frame.
        if find_spec('torchvision') is None:
            raise MissingDependencyError(
                f'masks of everything by "{source.name}" need torchvision; install the build of '
                'torchvision that belongs to your torch, or give a network of the Mask2Former '
                'family as masks'
            )
        from transformers import pipeline

        model = runtime.model('AutoModelForMaskGeneration', source)
        self.models = {'masks': features.version(model, source)}
        self._batch_size = runtime.batch_size
        self._pipeline = pipeline(
            'mask-generation',
            model=model,
            image_processor=features.load('AutoImageProcessor', source),
            device=runtime.device,
        )

    def find(self, color: NDArray[np.uint8]) -> FoundMasks:
        """Return the masks of an image."""
        found = self._pipeline(Image.fromarray(color), points_per_batch=self._batch_size)
        masks = [np.asarray(mask, bool) for mask in found['masks']]
        scores = np.asarray(found['scores'].float().cpu(), np.float32)
        return FoundMasks(_stacked(masks, color), scores.clip(0, 1), ('',) * len(masks))


class SegmentedMasks:
    """Segments of a network of the Mask2Former family, whatever classes it learnt."""

    def __init__(
        self, source: features.NetworkSource, min_confidence: float, runtime: features.Runtime
    ) -> None:
        self._model = runtime.model('AutoModelForUniversalSegmentation', source)
        self._processor = features.load('AutoImageProcessor', source)
        self._runtime, self._min_confidence = runtime, min_confidence
        self.models = {'masks': features.version(self._model, source)}

    def find(self, color: NDArray[np.uint8]) -> FoundMasks:
        """Return the masks of an image."""
        inputs = self._processor(images=Image.fromarray(color), return_tensors='pt')
        outputs = self._runtime.run(self._model, inputs)
        [found] = self._processor.post_process_panoptic_segmentation(
            outputs,
            threshold=self._min_confidence,
            label_ids_to_fuse=set(),
            target_sizes=[color.shape[:2]],
        )
        segments = found['segments_info']
        image = np.asarray(found['segmentation'].cpu()) if segments else np.empty(0)
        masks = [image == segment['id'] for segment in segments]
        scores = np.array([segment['score'] for segment in segments], np.float32)
        return FoundMasks(_stacked(masks, color), scores, ('',) * len(masks))


class PromptedMasks:
    """Boxes that a detector finds by text, masked by a network of the SAM family."""

    def __init__(
        self,
        masks: features.NetworkSource,
        detector: features.NetworkSource,
        prompts: Sequence[str],
        min_confidence: float,
        runtime: features.Runtime,
    ) -> None:
        self._detector = runtime.model('AutoModelForZeroShotObjectDetection', detector)
        self._reader = features.load('AutoProcessor', detector)
        self._masker = runtime.model('AutoModelForMaskGeneration', masks)
        self._processor = features.load('AutoProcessor', masks)
        self._prompts, self._runtime = list(prompts), runtime
        self._min_confidence = min_confidence
        self.models = {
            'masks': features.version(self._masker, masks),
            'detector': features.version(self._detector, detector),
        }

    def find(self, color: NDArray[np.uint8]) -> FoundMasks:
        """Return the masks of an image."""
        image = Image.fromarray(color)
        inputs = self._reader(images=image, text=[self._prompts], return_tensors='pt')
        outputs = self._runtime.run(self._detector, inputs)
        [found] = self._reader.post_process_grounded_object_detection(
            outputs,
            threshold=self._min_confidence,
            target_sizes=[color.shape[:2]],
            text_labels=[self._prompts],
        )
        boxes = found['boxes'].float().cpu()
        if not len(boxes):
            return FoundMasks(_stacked([], color), np.empty(0, np.float32), ())
        scores = np.asarray(found['scores'].float().cpu(), np.float32)
        return FoundMasks(self._in_boxes(image, boxes), scores, tuple(found['text_labels']))

    def _in_boxes(self, image: Image.Image, boxes: Any) -> NDArray[np.bool_]:
        """Return the best mask (K, height, width) of each box (K, 4), x0, y0, x1, y1 in pixels."""
        prompt = self._processor(images=image, input_boxes=[boxes.tolist()], return_tensors='pt')
        sizes = {
            name: prompt.pop(name)
            for name in ('original_sizes', 'reshaped_input_sizes')
            if name in prompt
        }
        outputs = self._runtime.run(self._masker, prompt, multimask_output=False)
        [masks] = self._processor.post_process_masks(outputs.pred_masks.float().cpu(), **sizes)
        return np.asarray(masks[:, 0], bool)


def _stacked(masks: Sequence[NDArray[np.bool_]], color: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return np.stack(masks) if masks else np.zeros((0, *color.shape[:2]), np.bool_)
