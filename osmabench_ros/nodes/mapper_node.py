"""Hosts a bundled mapping method: frames in, a semantic map out."""

import time
from functools import partial

from osmabench_ros.base import contract as topics
from osmabench_ros.mappers.mapper import Mapper, make_mapper, mapper_class, reads_albedo
from osmabench_ros.participant import Participant
from osmabench_ros.ros.node.diagnostics import Health, Level
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node
from osmabench_ros.ros.node.settings import MapperSettings
from osmabench_ros.semantics.labels import LabelSet

# Without a frame, though the run goes on.
STALE_AFTER_S = 5.0


class MapperNode(BenchmarkNode[MapperSettings]):
    """Runs a bundled mapping method as a participant of a run."""

    def __init__(self) -> None:
        super().__init__('mapper', MapperSettings)
        self.participant: Participant | None = None

    def configure(self) -> None:
        """Subscribe; the mapper itself is made when the label set is known."""
        value = self.settings
        self.participant = Participant(
            self._make,
            self,
            labels=True,
            ground_truth=mapper_class(value.mapper).uses_ground_truth,
            albedo=reads_albedo(value.options),
            lockstep=value.pacing.lockstep,
            settle_s=None if value.pacing.lockstep else value.settle_s,
            map_every_frames=value.evaluation.map_every_frames,
        )

    def _make(self, labels: LabelSet) -> Mapper:
        value = self.settings
        return make_mapper(
            value.mapper, label_set=labels, seed=value.seed, options=dict(value.options)
        )

    def health(self) -> Health:
        """Return how many frames were mapped, how fast, and whether frames arrive."""
        part, now_s = self.participant, time.monotonic()
        if part is None:
            return Health(message='waiting for frames')
        silent_s = now_s - part.last_frame_s
        level, message = Level.OK, 'published the map' if part.published else 'mapping'
        dropped = part.dropped + part.receiver.incomplete
        if part.running and silent_s > STALE_AFTER_S:
            level, message = Level.STALE, f'no frame for {silent_s:.0f} s'
        elif part.waiting:
            level, message = Level.WARN, f'frames wait for topic "{topics.LABEL_INFO}"'
        elif dropped:
            level, message = Level.WARN, f'{dropped} frames dropped or incomplete'
        elif not part.work.count:
            message = 'waiting for frames'
        values = {
            'frames_mapped': part.work.count,
            'frames_dropped': dropped,
            **part.work.values(now_s),
        }
        return Health(level, message, values)


main = partial(run_node, MapperNode)

if __name__ == '__main__':
    raise SystemExit(main())
