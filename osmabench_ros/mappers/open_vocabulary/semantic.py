"""Dense segmentation by a network with classes of its own, such as those of ADE20K."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.open_vocabulary.networks import NetworkSource, Runtime, load, version
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
        Name in the label set by name of the network, for what is not spelt alike.

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
        source: NetworkSource,
        label_set: LabelSet,
        names: Mapping[str, str],
        runtime: Runtime,
    ) -> None:
        self._model: Any = runtime.model('AutoModelForSemanticSegmentation', source)
        self._processor = load('AutoImageProcessor', source)
        self._runtime = runtime
        classes = {int(row): str(name) for row, name in self._model.config.id2label.items()}
        self._class_ids = class_ids(classes, label_set, names)
        self.models = {'segmentation': version(self._model, source)}

    def label(self, color: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Return the class (height, width) of each pixel of an RGB image, or UNLABELLED."""
        import torch

        inputs = self._processor(images=Image.fromarray(color), return_tensors='pt')
        with torch.inference_mode():
            outputs = self._model(**self._runtime.moved(inputs))
        [image] = self._processor.post_process_semantic_segmentation(
            outputs, target_sizes=[color.shape[:2]]
        )
        return np.asarray(self._class_ids[np.asarray(image.cpu())])
