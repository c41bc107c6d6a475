"""Parameters that say what a bridge publishes: a simulation, or a recorded sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmabench_ros.errors import ConfigError
from osmabench_ros.ros.parameters import ParameterSpec
from osmabench_ros.ros.simulation_parameters import SIMULATION_PARAMETERS, open_frames
from osmabench_ros.sequences.reading import reading_from_text
from osmabench_ros.sequences.recorded import RECORDED, RecordedFrames, names_of, open_sequence
from osmabench_ros.simulation.frame_source import FrameSource

FRAME_SOURCE_PARAMETERS = (
    *SIMULATION_PARAMETERS,
    ParameterSpec(
        'sequence',
        '',
        'Recorded sequence to play instead of a simulation: a folder, a bag, an .mcap file.',
    ),
    ParameterSpec(
        'sequence_topics',
        '',
        'Topics of a bag with other names: a YAML mapping such as {color: /rgb, pose: tf}, or '
        'a file with one.',
    ),
)

ALSO_FOR_SEQUENCES = ('seed', 'condition')


@dataclass(frozen=True)
class BridgeSource:
    """Frames with the part of a run's identity that comes from where they do."""

    frames: FrameSource
    dataset: str
    scene: str
    condition: str
    simulator: str
    lighting_known: bool = True


def open_source(values: Mapping[str, Any]) -> BridgeSource:
    """Open what the values of `FRAME_SOURCE_PARAMETERS` name.

    Raises ConfigError, which names the parameters, if they contradict each other; another
    OsmabenchError if the scene or the sequence is at fault.
    """
    if values['sequence']:
        return _open_sequence(values)
    if values['sequence_topics']:
        raise ConfigError('parameter "sequence_topics" is about a bag; name it in "sequence"')
    frames = open_frames(dict(values))
    condition = frames.condition.name
    return BridgeSource(frames, frames.dataset, frames.scene, condition, values['simulator'])


def _open_sequence(values: Mapping[str, Any]) -> BridgeSource:
    path = Path(values['sequence'])
    _refuse_settings_of_simulations(values)
    sequence = open_sequence(path, reading_from_text(values['sequence_topics']))
    frames, info = RecordedFrames(sequence), sequence.info
    condition = values['condition']
    default = next(spec.default for spec in SIMULATION_PARAMETERS if spec.name == 'condition')
    if info.condition and condition not in (default, info.condition):
        raise ConfigError(
            f'parameter "condition" is "{condition}", but {path} was recorded under '
            f'"{info.condition}"; leave the parameter out'
        )
    return BridgeSource(
        frames,
        *names_of(sequence, path),
        info.condition or condition,
        RECORDED,
        lighting_known=False,
    )


def _refuse_settings_of_simulations(values: Mapping[str, Any]) -> None:
    for spec in SIMULATION_PARAMETERS:
        if spec.name not in ALSO_FOR_SEQUENCES and values[spec.name] != spec.default:
            raise ConfigError(
                f'parameter "{spec.name}" describes a simulation, but "sequence" plays a '
                'recorded one; leave one of them out'
            )
