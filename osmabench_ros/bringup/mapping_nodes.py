"""The nodes that map in a run: one for a bundled method, with an adapter for a foreign one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from osmabench_ros.bringup.node_spec import MAPPER, METHOD, NodeSpec
from osmabench_ros.bringup.stack_values import stack_values
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.live_method import LiveMethod, MapFile, load_live_method
from osmabench_ros.mappers.offline_method import filled
from osmabench_ros.mappers.transform_edges import MapOrigin
from osmabench_ros.ros.transform_settings import TfSettings
from osmabench_ros.runs.config import MapperConfig
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.preparation import GROUND_TRUTH_FOLDER
from osmabench_ros.simulation.trajectory import CameraMount


def mapping_nodes(plan: RunPlan, work: Path) -> list[NodeSpec]:
    """Return the nodes that turn frames into the semantic map of a run, the one that maps first.

    The one called "mapper" publishes `semantic_map`; the one called "method", if any, maps for it.
    Raises ConfigError if the stack is unknown or a variable of it is not set.
    """
    mapper = plan.mapper
    if mapper.stack:
        method = load_live_method(mapper.stack).filled(values_of_stack(plan, work))
        return [_stack(plan, method, work), _beside(adapter_of_stack(method), plan)]
    if mapper.map_topic:
        node = _foreign(METHOD, plan)
        topic = {'map_topic': mapper.map_topic, 'map_type': mapper.map_type}
        return [node, _beside(adapter(mapper.name, topic), plan)]
    if mapper.command:
        return [_foreign(MAPPER, plan)]
    return [_bundled(plan)]


def _foreign(name: str, plan: RunPlan) -> NodeSpec:
    mapper = plan.mapper
    return NodeSpec(
        name,
        command=mapper.command,
        managed=False,
        acks=mapper.acks,
        signs=mapper.token,
        tf=tf_settings(mapper),
    )


def adapter_of_stack(method: LiveMethod) -> NodeSpec:
    """Return the node that takes the map of a stack, whose ``${...}`` are filled in."""
    source, pose = method.map, method.pose
    if isinstance(source, MapFile):
        values = {'map_file': source.path, 'importer': source.importer}
    else:
        values = {'map_topic': source.topic, 'map_type': source.type}
    if method.finish is not None:
        values |= {
            'finish_service': method.finish.service,
            'finish_type': method.finish.type,
            'finish_request': yaml.safe_dump(method.finish.request),
        }
    return adapter(method.name, values, () if pose is None else (pose.topic,))


def adapter(method: str, values: Mapping[str, Any], topics: tuple[str, ...] = ()) -> NodeSpec:
    """Return the node that publishes a foreign map as `semantic_map`; other topics of its own."""
    own = tuple(filter(None, (values.get('map_topic'), *topics)))
    return NodeSpec(MAPPER, 'map_adapter_node', {'method': method, **values}, topics=own)


def _beside(spec: NodeSpec, plan: RunPlan) -> NodeSpec:
    """Return an adapter that waits for a method which was started beside it."""
    mapper, longest_s = plan.mapper, plan.config.pacing.evaluation_timeout_s
    values = {
        'settle_s': mapper.settle_s,
        # Else the run would end for want of a map.
        'settle_timeout_s': min(mapper.settle_timeout_s, 0.9 * longest_s),
        'watch_processes': True,
        'count_frames': not mapper.acks,
    }
    return dataclasses.replace(spec, parameters={**spec.parameters, **values})


def _bundled(plan: RunPlan) -> NodeSpec:
    mapper = plan.mapper
    return NodeSpec(
        MAPPER,
        'mapper_node',
        {
            'mapper': mapper.bundled,
            'options': yaml.safe_dump(_for_this_run(mapper.options, plan)),
            'seed': plan.scene.seed,
            'pacing': plan.pacing.value,
            'map_every_frames': plan.config.evaluation.map_every_frames,
        },
        acks=True,
        tf=tf_settings(mapper),
    )


def _for_this_run(options: dict[str, Any], plan: RunPlan) -> Any:
    values = {
        'run': str(plan.directory.absolute()),
        'scene': plan.identity.scene_key.scene,
        'condition': plan.identity.condition,
        'seed': str(plan.scene.seed),
    }

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            return filled(value, values, f'options of mapper {plan.mapper.name}')
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list) else value

    return fill(options)


def tf_settings(mapper: MapperConfig, method: LiveMethod | None = None) -> TfSettings:
    """Return who publishes which edge of TF: by the configuration, else by the stack's file.

    Raises ConfigError if two keys contradict each other.
    """
    transforms, origin = mapper.transforms, mapper.map_origin
    if method is not None:
        transforms = method.transforms if transforms is None else transforms
        origin = origin or method.map_origin
    return TfSettings(mapper.publish_tf, origin or MapOrigin.FIRST_POSE, transforms or ())


def values_of_stack(plan: RunPlan, work: Path) -> dict[str, str]:
    """Return what the file of a stack may refer to in a run."""
    return stack_values(work, _base_to_camera(plan), variables=plan.mapper.variables)


def _base_to_camera(plan: RunPlan) -> Pose:
    camera = plan.config.camera
    return CameraMount(camera.mounting_height_m, camera.pitch_rad).base_to_camera


def _stack(plan: RunPlan, method: LiveMethod, work: Path) -> NodeSpec:
    pose = _base_to_camera(plan)
    numbers = [*pose.translation, *pose.quaternion]
    return NodeSpec(
        METHOD,
        command=(
            'ros2',
            'launch',
            'osmabench_ros',
            'stack.launch.py',
            f'stack:={plan.mapper.stack}',
            f'variables:={yaml.safe_dump(plan.mapper.variables, default_flow_style=True).strip()}',
            f'work:={work.absolute()}',
            f'ground_truth:={(plan.shared_directory / GROUND_TRUTH_FOLDER).absolute()}',
            f'base_to_camera:={" ".join(f"{number:.9g}" for number in numbers)}',
        ),
        managed=False,
        is_node=False,
        participants=method.participants,
        tf=tf_settings(plan.mapper, method),
    )
