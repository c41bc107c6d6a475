"""Recorded scenes of a configuration: a sequence, and its ground truth in a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from osmabench_ros.errors import ConfigError
from osmabench_ros.runs.config import SceneConfig
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth
from osmabench_ros.sequences.reader import RecordedSequence
from osmabench_ros.sequences.recorded import names_of, open_sequence

CONTENT_BYTES = 2**20
"""Of larger files, which are images and bags, a digest takes the size alone."""


def open_recorded(item: SceneConfig) -> RecordedSequence:
    """Open the sequence of a recorded scene."""
    sequence, _ = item.recorded_files
    return open_sequence(sequence, item.topics)


def recorded_key(item: SceneConfig, sequence: RecordedSequence) -> SceneKey:
    """Return the identity of a recorded scene."""
    return SceneKey(*names_of(sequence, item.recorded_files[0]), item.seed)


def recorded_labels(item: SceneConfig, sequence: RecordedSequence) -> LabelSet:
    """Return the classes that the bridge announces; raise ConfigError if the sequence has none."""
    labels = sequence.info.label_set
    if labels is None:
        raise ConfigError(
            f'sequence {item.sequence} names no classes, which mappers and scores need; add '
            'embed_semseg_classes.json'
        )
    return labels


def recorded_truth(item: SceneConfig, sequence: RecordedSequence) -> GroundTruth:
    """Read the ground truth of a recorded scene; raises ConfigError if it has other classes."""
    truth = read_ground_truth(item.recorded_files[1])
    if truth.label_set.classes != recorded_labels(item, sequence).classes:
        raise ConfigError(
            f'ground truth {item.ground_truth} and sequence {item.sequence} have different '
            'classes; name the ground truth that was made for the sequence'
        )
    return truth


def recorded_digest(item: SceneConfig) -> str:
    """Return the digest of the files of sequence and ground truth."""
    digest = hashlib.sha256()
    for root in item.recorded_files:
        for file in sorted(root.rglob('*')) if root.is_dir() else [root]:
            if file.is_file():
                size = file.stat().st_size
                digest.update(f'{file.relative_to(root).as_posix()} {size}\n'.encode())
                digest.update(file.read_bytes() if size <= CONTENT_BYTES else b'')
    return digest.hexdigest()


def check_recorded_condition(
    item: SceneConfig, sequence: RecordedSequence, conditions: Sequence[str]
) -> None:
    """Raise ConfigError if the condition is not that of the recorded sequence."""
    recorded = sequence.info.condition
    others = [name for name in conditions if recorded and name != recorded]
    if others or len(conditions) > 1:
        raise ConfigError(
            f'sequence {item.sequence} was recorded under one condition, '
            f'"{recorded or "unknown"}", so the conditions cannot be '
            f'{", ".join(conditions)}; write conditions: [{recorded or "baseline"}]'
        )
