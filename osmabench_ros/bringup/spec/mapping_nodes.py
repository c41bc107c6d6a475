"""The mapping nodes of a run: the mapper of a bundled method, or a stack and its adapter."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import MAPPER
from osmabench_ros.base.files import Existing, atomic_directory, claim_folder, write_text
from osmabench_ros.bringup.spec.node_spec import METHOD, PACKAGE, NodeSpec
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers import live_method
from osmabench_ros.mappers.live_method import MapOrigin
from osmabench_ros.mappers.offline_method import filled
from osmabench_ros.ros.node.settings import MapAdapterSettings, MapperSettings, TfSettings
from osmabench_ros.runs.config import MapperConfig, Settling
from osmabench_ros.runs.plan import RunPlan
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
    """Return the values of the ``${...}`` of a live method; the pose is optical, in base_link."""
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
    """Yield the working folder of a stack; it appears with all files left there."""
    with ExitStack() as resources:
        try:
            yield resources.enter_context(atomic_directory(folder, Existing.MOVE_ASIDE))
        finally:
            resources.close()  # after an error the files may show its cause


def prepare_stack(
    name: str, work: Path, values: Mapping[str, str], label_set: LabelSet | None
) -> live_method.LiveMethod:
    """Fill in a live method and write its files; ConfigError if a value is missing."""
    method = live_method.load_live_method(name).filled(values)
    claim_folder(work)
    for file, text in method.files.items():
        write_text(work / file, text)
    if label_set is not None:
        write_text(work / LABEL_SPACE, live_method.hydra_label_space(label_set))
    return method


def mapping_nodes(plan: RunPlan, work: Path) -> list[NodeSpec]:
    """Return the nodes that turn frames into the map of a run, the one that maps first."""
    mapper = plan.mapper
    if mapper.stack:
        method = live_method.load_live_method(mapper.stack).filled(values_of_stack(plan, work))
        settings = _beside(adapter_settings(method), plan)
        return [_stack(plan, method, work), adapter(settings, method)]
    if mapper.map_topic:
        node = _make_third_party(METHOD, plan)
        settings = MapAdapterSettings(
            method=mapper.name, map_topic=mapper.map_topic, map_type=mapper.map_type
        )
        return [node, adapter(_beside(settings, plan))]
    if mapper.command:
        return [_make_third_party(MAPPER, plan)]
    return [_specify_bundled(plan)]


def _make_third_party(name: str, plan: RunPlan) -> NodeSpec:
    mapper = plan.mapper
    return NodeSpec(
        name,
        command=tuple(_with_seed(part, plan) for part in mapper.command),
        managed=False,
        acks=mapper.acks,
        tf=tf_settings(mapper),
    )


def adapter_settings(method: live_method.LiveMethod) -> MapAdapterSettings:
    """Return the adapter settings of a filled-in stack."""
    source, finish = method.map, method.finish
    settings = MapAdapterSettings(method=method.name)
    if isinstance(source, live_method.MapFile):
        place = {'map_file': Path(source.path), 'importer': source.importer}
    else:
        place = {'map_topic': source.topic, 'map_type': source.type}
    if finish is not None:
        place |= {
            'finish_service': finish.service,
            'finish_type': finish.type,
            'finish_request': finish.request,
        }
    return settings.model_copy(update=place)


def adapter(
    settings: MapAdapterSettings, method: live_method.LiveMethod | None = None
) -> NodeSpec:
    """Return the adapter node, which publishes the map of a stack or node as `semantic_map`."""
    pose = '' if method is None or method.pose is None else method.pose.topic
    topics = tuple(filter(None, (settings.map_topic, pose)))
    return NodeSpec(MAPPER, 'map_adapter_node', settings, topics=topics)


def _beside(settings: MapAdapterSettings, plan: RunPlan) -> MapAdapterSettings:
    """Return the settings of an adapter that waits for the method of its run."""
    mapper, longest_s = plan.mapper, plan.config.pacing.evaluation_timeout_s
    # Else the run would end for want of a map.
    timeout_s = min(mapper.settle_timeout_s, 0.9 * longest_s)
    values = {
        'settling': Settling(settle_s=mapper.settle_s, settle_timeout_s=timeout_s),
        'count_frames': not mapper.acks,
    }
    return settings.model_copy(update=values)


def _specify_bundled(plan: RunPlan) -> NodeSpec:
    mapper = plan.mapper
    values = {
        'run': str(plan.directory.absolute()),
        'scene': plan.identity.scene_key.scene,
        'condition': plan.identity.condition,
        'seed': str(plan.method_seed),
    }
    return NodeSpec(
        MAPPER,
        'mapper_node',
        MapperSettings(
            mapper=mapper.bundled,
            options=filled(mapper.options, values, f'options of mapper {mapper.name}'),
            seed=plan.method_seed,
            pacing=plan.pacing_config,
            evaluation=plan.config.evaluation,
        ),
        acks=True,
        tf=tf_settings(mapper),
    )


def _with_seed(text: str, plan: RunPlan) -> str:
    """Fill in ``${seed}`` and keep the rest, which may be for a shell."""
    return text.replace('${seed}', str(plan.method_seed))


def tf_settings(mapper: MapperConfig, method: live_method.LiveMethod | None = None) -> TfSettings:
    """Return who publishes which edge of TF, by the configuration or else the stack's file."""
    transforms, origin = mapper.transforms, mapper.map_origin
    if method is not None:
        transforms = method.transforms if transforms is None else transforms
        origin = origin or method.map_origin
    return TfSettings(
        transforms=transforms or (),
        publish_tf=mapper.publish_tf,
        map_origin=origin or MapOrigin.FIRST_POSE,
    )


def values_of_stack(plan: RunPlan, work: Path) -> dict[str, str]:
    """Return the values that the file of a stack may refer to in a run."""
    variables = {name: _with_seed(text, plan) for name, text in plan.mapper.variables.items()}
    return stack_values(work, plan.config.camera.mount.base_to_camera, variables=variables)


def _stack(plan: RunPlan, method: live_method.LiveMethod, work: Path) -> NodeSpec:
    pose = plan.config.camera.mount.base_to_camera
    numbers = [*pose.translation, *pose.quaternion]
    return NodeSpec(
        METHOD,
        command=(
            *('ros2', 'launch', PACKAGE, 'stack.launch.py'),
            f'stack:={plan.mapper.stack}',
            f'variables:={yaml.safe_dump(plan.mapper.variables, default_flow_style=True).strip()}',
            f'work:={work.absolute()}',
            f'ground_truth:={(plan.ground_truth_directory).absolute()}',
            f'base_to_camera:={" ".join(f"{number:.9g}" for number in numbers)}',
        ),
        managed=False,
        is_node=False,
        participants=method.participants,
        tf=tf_settings(plan.mapper, method),
    )
