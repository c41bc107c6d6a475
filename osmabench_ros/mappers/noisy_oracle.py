"""Noisy oracle: ground truth with the errors of real perception, in adjustable doses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.noise import NoiseModel, NoiseOptions
from osmabench_ros.mappers.options import parse_options
from osmabench_ros.mappers.oracle import OracleMapper, OracleOptions, require_ground_truth
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import LabelSet


class NoisyOracleOptions(NoiseOptions, OracleOptions):
    """Options of the noisy oracle: those of the oracle and how much goes wrong."""

    vote: bool = True


class NoisyOracleMapper:
    """Fuses ground truth that was corrupted first; the segments of a voxel vote.

    `seed` is that of the noise, `options` are `NoisyOracleOptions`.
    """

    name = 'noisy_oracle'
    uses_ground_truth = True

    def __init__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> None:
        self.options = parse_options(NoisyOracleOptions, options, self.name)
        self._noise = NoiseModel(self.options, label_set, seed)
        names = OracleOptions.model_fields
        self._oracle = OracleMapper(
            label_set=label_set,
            seed=seed,
            options={name: getattr(self.options, name) for name in names},
        )

    def integrate(self, frame: Frame) -> None:
        """Take one frame into the map, flawed.

        Raises ConfigError if it has no ground truth, or a class id is not in the label set.
        """
        require_ground_truth(frame, self.name)
        self._oracle.integrate(self._noise.apply(frame))

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the map so far; `final` if no frame will follow."""
        result = self._oracle.semantic_map(final=final)
        provenance = replace(result.header.provenance, method=self.name)
        return replace(result, header=replace(result.header, provenance=provenance))
