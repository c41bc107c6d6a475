"""A label set as Hydra and Khronos name it, so that they can read our semantic images."""

from __future__ import annotations

import yaml

from osmabench_ros.semantics.labels import LabelSet


def hydra_label_space(label_set: LabelSet) -> str:
    """Return the label space file (YAML) that Hydra and Khronos need for a label set.

    Whatever is no part of the building is an object; unlabelled pixels (65535) lie above
    `total_semantic_labels`.
    """
    ids = [item.id for item in label_set.classes]
    return yaml.safe_dump(
        {
            'total_semantic_labels': max(ids, default=-1) + 1,
            'dynamic_labels': [],
            'invalid_labels': [],
            'object_labels': [item.id for item in label_set.classes if not item.structure],
            'surface_places_labels': [
                item.id for item in label_set.classes if item.structure and item.name == 'floor'
            ],
            'label_names': [{'label': item.id, 'name': item.name} for item in label_set.classes],
        },
        sort_keys=False,
    )
