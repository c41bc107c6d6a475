"""Maps out of hydra_msgs/DsgUpdate, what Hydra and Khronos send."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from osmabench_ros.errors import ContractError, MapError
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.hydra import METHOD, import_payload
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.options import TopicOptions


def map_of_dsg_update(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    """Return the map of a full hydra_msgs/DsgUpdate; without a label set points stay unlabelled.

    Raises ContractError if it is a partial update (Hydra's own receiver refuses those too), or no
    scene graph; MissingDependencyError if spark-dsg is not installed.
    """
    if not message.full_update:
        raise ContractError(
            f'topic "{topic}": update {message.sequence_number} is partial; '
            'let the method publish full updates'
        )
    header = options.header(message.header)
    imported = ImportOptions(
        frame_id=header.frame_id,
        label_set=options.label_set,
        scene=options.scene,
        condition=options.condition,
    )
    payload = np.asarray(message.layer_contents, np.uint8).tobytes()
    try:
        made = import_payload(payload, imported, METHOD)
    except MapError as error:
        raise ContractError(f'topic "{topic}": {error}') from error
    provenance = dataclasses.replace(made.header.provenance, method=options.method)
    own = dataclasses.replace(made.header, provenance=provenance, stamp_ns=header.stamp_ns)
    return dataclasses.replace(made, header=own)
