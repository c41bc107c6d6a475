"""What the files in config/methods/live may refer to: our topics, frames and a work folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from osmabench_ros.base.files import Existing, filled_folder, write_text
from osmabench_ros.base.owned_folder import claim_folder
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.hydra_labels import hydra_label_space
from osmabench_ros.mappers.live_method import LiveMethod, load_live_method
from osmabench_ros.ros import topics
from osmabench_ros.semantics.labels import LabelSet

TOPICS = {
    'color': topics.COLOR,
    'depth': topics.DEPTH,
    'semantic': topics.SEMANTIC,
    'instance': topics.INSTANCE,
    'color_info': topics.COLOR_INFO,
    'depth_info': topics.DEPTH_INFO,
    'camera_pose': topics.CAMERA_POSE,
    'odometry': topics.ODOMETRY,
}
LABEL_SPACE = 'label_space.yaml'
STACK_FOLDER = 'stack'
"""In the folder of a run, for the files of the stack."""


def stack_values(
    work: Path,
    base_to_camera: Pose,
    *,
    namespace: str = '',
    variables: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the values of the ``${...}`` of a live method, with variables that the user has set.

    The namespace is that of our topics; the pose is that of the optical frame in base_link.
    """
    prefix = f'/{namespace.strip("/")}/' if namespace.strip('/') else '/'
    return {
        **{name: prefix + topic for name, topic in TOPICS.items()},
        'world_frame': topics.WORLD_FRAME,
        'base_frame': topics.BASE_FRAME,
        'camera_frame': topics.CAMERA_FRAME,
        'base_to_camera': yaml.safe_dump(
            base_to_camera.matrix.tolist(), default_flow_style=True, width=10_000
        ).strip(),
        'work': str(work.absolute()),
        **(variables or {}),
    }


@contextmanager
def stack_folder(folder: Path) -> Iterator[Path]:
    """Yield where a stack works; what it leaves there, however it ends, is then listed as ours."""
    with ExitStack() as resources:
        try:
            yield resources.enter_context(filled_folder(folder, Existing.REPLACE))
        finally:
            resources.close()  # an error must not throw away what may tell why


def prepare_stack(
    name: str, work: Path, values: Mapping[str, str], label_set: LabelSet | None
) -> LiveMethod:
    """Fill in a live method, by name or YAML file, and write what the stack reads when it starts.

    Values are from `stack_values`; the classes of our semantic images, if any, are also written as
    Hydra's label space. Raises ConfigError if there is no such stack, or a value is missing.
    """
    method = load_live_method(name).filled(values)
    claim_folder(work)
    for file, text in method.files.items():
        write_text(work / file, text)
    if label_set is not None:
        write_text(work / LABEL_SPACE, hydra_label_space(label_set))
    return method
