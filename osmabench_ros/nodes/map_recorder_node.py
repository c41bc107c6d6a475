"""Captures the maps of a mapping method on disk."""

from __future__ import annotations

from pathlib import Path

from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import Image

from osmabench_ros.errors import ConfigError, ContractError
from osmabench_ros.maps.archive import unpack_map
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.storage import write_map
from osmabench_ros.msg import (
    LabelInfo,
    RecordedMap,
    RunInfo,
    SemanticMapChunk,
)
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from osmabench_ros.ros import topics
from osmabench_ros.ros.acknowledger import Acknowledger
from osmabench_ros.ros.checked_subscription import create_checked_subscription
from osmabench_ros.ros.frame_sampler import FrameSampler
from osmabench_ros.ros.label_messages import label_set_from_message
from osmabench_ros.ros.lifecycle import BenchmarkNode, run_node
from osmabench_ros.ros.map_messages import MAX_PAYLOAD_BYTES, MapAssembler
from osmabench_ros.ros.parameters import ParameterSpec
from osmabench_ros.ros.qos import frame_profile, latched_profile, lossless_profile
from osmabench_ros.ros.stamps import stamp_from_message
from osmabench_ros.semantics.labels import LabelSet

PARAMETERS = (
    ParameterSpec('map_directory', '', 'Folder to write the final map to; must not exist yet.'),
    ParameterSpec('participant', '', 'Only record maps of this participant; empty for any.'),
    ParameterSpec('pacing', 'lockstep', 'Pacing of the run.', choices=('lockstep', 'realtime')),
    ParameterSpec('frames_directory', '', 'Folder for sample colour frames; empty for none.'),
    ParameterSpec('sample_frames', 6, 'How many frames to keep as pictures.', 1, 1000),
    ParameterSpec(
        'max_map_bytes', MAX_PAYLOAD_BYTES, 'Largest map that is accepted, bytes.', 1, 2**40
    ),
)


class MapRecorderNode(BenchmarkNode):
    """Reassembles announced maps, checks them against the run's labels, writes the final one."""

    def __init__(self) -> None:
        super().__init__('map_recorder', PARAMETERS)
        self._assembler = MapAssembler(self.parameter['max_map_bytes'])
        self._label_set: LabelSet | None = None
        self._run_id = ''
        self._samples: FrameSampler | None = None

    def configure(self) -> None:
        """Subscribe, and refuse a folder that is taken."""
        if not self.parameter['map_directory']:
            raise ConfigError(
                'node map_recorder: parameter "map_directory" is empty; name a folder'
            )
        self._directory = Path(self.parameter['map_directory']).absolute()
        if self._directory.exists():
            raise ConfigError(
                f'map folder {self._directory} exists; remove it or record to another'
            )
        self._acks = Acknowledger(self, self.get_name())
        self._recorded = self.create_publisher(RecordedMap, topics.RECORDED_MAP, latched_profile())
        lockstep = self.parameter['pacing'] == 'lockstep'
        if self.parameter['frames_directory']:
            self._samples = FrameSampler(
                Path(self.parameter['frames_directory']), self.parameter['sample_frames']
            )
            create_checked_subscription(
                self, Image, topics.COLOR, self._samples.take, frame_profile(lockstep=lockstep)
            )
        for message_type, topic, callback, profile in (
            (PoseStamped, topics.CAMERA_POSE, self._on_pose, frame_profile(lockstep=lockstep)),
            (RunInfo, topics.RUN_INFO, self._on_run_info, latched_profile()),
            (LabelInfo, topics.LABEL_INFO, self._on_labels, latched_profile()),
            (SemanticMapMessage, topics.SEMANTIC_MAP, self._on_map, latched_profile()),
            (SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, self._on_chunk, lossless_profile()),
        ):
            create_checked_subscription(self, message_type, topic, callback, profile)

    def _on_pose(self, message: PoseStamped) -> None:
        self._acks.acknowledge(stamp_from_message(message.header.stamp))

    def _on_run_info(self, message: RunInfo) -> None:
        self._run_id = message.run_id
        if self._samples is not None:
            self._samples.start(message)

    def _on_labels(self, message: LabelInfo) -> None:
        self._label_set = label_set_from_message(message, topics.LABEL_INFO)

    def _on_map(self, message: SemanticMapMessage) -> None:
        if self.parameter['participant'] in ('', message.participant):
            self._record(self._assembler.announce(message))

    def _on_chunk(self, message: SemanticMapChunk) -> None:
        self._record(self._assembler.add(message))

    def _record(self, complete: tuple[SemanticMapMessage, bytes] | None) -> None:
        if complete is None or not complete[0].is_final:
            return
        announcement, payload = complete
        semantic_map = unpack_map(payload, max_bytes=self.parameter['max_map_bytes'])
        self._check_labels(semantic_map, announcement.participant)
        write_map(semantic_map, self._directory)
        self._recorded.publish(self._record_message(announcement, semantic_map))
        self.done = True
        self.get_logger().info(f'wrote {self._directory}')

    def _check_labels(self, semantic_map: SemanticMap, participant: str) -> None:
        dense = semantic_map.dense
        if self._label_set is None or dense is None or dense.labels is None:
            return
        try:
            self._label_set.check(
                dense.labels, f'topic "{topics.SEMANTIC_MAP}" from {participant}'
            )
        except ConfigError as error:
            raise ContractError(str(error)) from error

    def _record_message(
        self, announcement: SemanticMapMessage, semantic_map: SemanticMap
    ) -> RecordedMap:
        dense = semantic_map.dense
        return RecordedMap(
            header=announcement.header,
            run_id=self._run_id,
            participant=announcement.participant,
            digest=announcement.digest,
            uri=self._directory.as_uri(),
            is_final=announcement.is_final,
            point_count=0 if dense is None else len(dense.points),
            node_count=len(semantic_map.graph.nodes),
        )


def main() -> int:
    """Run the node."""
    return run_node(MapRecorderNode)


if __name__ == '__main__':
    raise SystemExit(main())
