"""What a configuration says about maps on the way, and about bags of runs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from osmabench_ros.simulation.section import Section


class EvaluationConfig(Section):
    """What is scored besides the final map of a run.

    That is the map which a method had after every `map_every_frames` frames; 0: none.
    """

    map_every_frames: int = Field(0, ge=0)


class RecordingConfig(Section):
    """Whether and how the topics of a run are recorded to a bag.

    Parameters
    ----------
    enabled : bool
        Record to bag/ in the folder of the run.
    topics : tuple of str
        Those to record; empty for the topic contract.
    exclude : str
        Regular expression of topics to leave out.
    compression : str
        Of the bag.
    split_size_mb, split_duration_s : float
        Begin a new file at this size or length; 0 never.
    """

    enabled: bool = False
    topics: tuple[str, ...] = ()
    exclude: str = ''
    compression: Literal['zstd', 'lz4', 'none'] = 'zstd'
    split_size_mb: float = Field(0.0, ge=0)
    split_duration_s: float = Field(0.0, ge=0)
