"""The one definition of the nodes of a run; the runner and the launch files both use it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from osmabench_ros.bringup.mapping_nodes import mapping_nodes
from osmabench_ros.bringup.node_spec import NodeSpec
from osmabench_ros.bringup.run_recording import bag_recorder
from osmabench_ros.bringup.stack_values import STACK_FOLDER
from osmabench_ros.ros.node_names import BRIDGE as BRIDGE
from osmabench_ros.ros.node_names import EVALUATOR as EVALUATOR
from osmabench_ros.ros.node_names import MAPPER
from osmabench_ros.ros.node_names import RECORDER as RECORDER
from osmabench_ros.ros.participants import Participant
from osmabench_ros.ros.transform_settings import TfSettings
from osmabench_ros.runs.plan import RunPlan, config_digest
from osmabench_ros.runs.preparation import GROUND_TRUTH_FOLDER, PATH_FILE, QUESTIONS_FILE

FRAMES_FOLDER = 'frames'


def nodes_of_run(plan: RunPlan, work: Path | None = None) -> list[NodeSpec]:
    """Return the nodes of a run, the bridge last, because it waits for the others.

    The shared folder must be prepared; a stack works in `work`, by default a folder of the run.
    """
    mapping = mapping_nodes(plan, work or plan.directory / STACK_FOLDER)
    signed = all(spec.signs for spec in mapping if spec.name == MAPPER)
    own_topics = [topic for spec in mapping for topic in spec.topics]
    recorders = [_recorder(plan, signed), *bag_recorder(plan, own_topics)]
    followers = [*mapping, *recorders, _evaluator(plan)]
    return [*followers, _bridge(plan, participants_of(followers), mapping[0].tf)]


def participants_of(specs: Sequence[NodeSpec]) -> list[str]:
    """Return whom the bridge waits for, as its parameter has it."""
    found = []
    for spec in specs:
        if spec.is_node and spec.participant:
            found.append(Participant(spec.name, spec.acks, spec.signs))
        found += [Participant(name, acks=False) for name in spec.participants]
    return [str(item) for item in found]


def simulation_parameters(plan: RunPlan) -> dict[str, Any]:
    """Return the parameters that say what is simulated, or which sequence is played."""
    config, camera = plan.config, plan.config.camera
    if plan.scene.sequence is not None:
        return {
            'sequence': str(plan.scene.sequence.absolute()),
            'sequence_topics': yaml.safe_dump(
                plan.scene.topics.model_dump(mode='json', exclude_defaults=True)
            ),
            'seed': plan.scene.seed,
            'condition': plan.identity.condition,
        }
    # By value, and under the name that the run has; the file may have changed since.
    condition = plan.condition.model_copy(update={'name': plan.identity.condition})
    return {
        'scene': plan.scene.reference,
        'scene_name': plan.scene.scene,
        'seed': plan.scene.seed,
        'condition': condition.model_dump_json(),
        'simulator': config.simulator.name,
        'simulator_options': yaml.safe_dump(config.simulator.options),
        'image_width': camera.width,
        'image_height': camera.height,
        'hfov_deg': camera.hfov_deg,
        'camera_height_m': camera.mounting_height_m,
        'camera_pitch_deg': camera.pitch_deg,
        'near_m': camera.near_m,
        'far_m': camera.far_m,
        'frame_rate_hz': config.trajectory.frame_rate_hz,
        'path_file': str(plan.shared_directory / PATH_FILE),
    }


def _bridge(plan: RunPlan, participants: list[str], tf: TfSettings) -> NodeSpec:
    pacing = plan.config.pacing
    return NodeSpec(
        BRIDGE,
        'simulator_bridge_node',
        {
            **simulation_parameters(plan),
            **tf.parameters(),
            'run_id': plan.identity.run_id,
            'mapper': plan.identity.mapper,
            'config_sha256': config_digest(plan.config),
            'pacing': plan.pacing.value,
            'speed_factor': pacing.speed_factor,
            'participants': participants,
            'map_publisher': MAPPER,
            'match_timeout_s': pacing.match_timeout_s,
            'ack_timeout_s': pacing.ack_timeout_s,
        },
        participant=False,
    )


def _recorder(plan: RunPlan, signed: bool) -> NodeSpec:
    return NodeSpec(
        RECORDER,
        'map_recorder_node',
        {
            'map_directory': str(plan.map_directory),
            'frames_directory': str(plan.directory / FRAMES_FOLDER),
            'participant': MAPPER,
            'signed': signed,
            'pacing': plan.pacing.value,
            'keep_intermediate_maps': plan.config.evaluation.map_every_frames > 0,
        },
        acks=True,
    )


def _evaluator(plan: RunPlan) -> NodeSpec:
    shared = plan.shared_directory
    config = plan.config
    return NodeSpec(
        EVALUATOR,
        'evaluator_node',
        {
            'ground_truth_directory': str(shared / GROUND_TRUTH_FOLDER),
            'questions_file': str(shared / QUESTIONS_FILE),
            'output_directory': str(plan.directory),
            'suites': yaml.safe_dump([item.model_dump() for item in config.suites]),
            'requirements': yaml.safe_dump([item.model_dump() for item in config.requirements]),
            'text_features': yaml.safe_dump(
                {name: str(file.absolute()) for name, file in config.text_features.items()}
            ),
            'allow_partial': plan.mapper.allow_partial,
            'exit_when_done': True,
        },
        ends_run=True,
    )
