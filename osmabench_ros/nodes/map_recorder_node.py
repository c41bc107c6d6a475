"""Records the maps of a mapping method on disk."""

import math
import time
from functools import partial
from pathlib import Path

from geometry_msgs.msg import PoseStamped
from PIL import Image as Picture
from rclpy.duration import Duration
from sensor_msgs.msg import Image

from osmabench_ros.base import contract as topics
from osmabench_ros.base.files import Existing, atomic_write, check_folder, claim_folder
from osmabench_ros.base.images import color_of
from osmabench_ros.errors import ContractError
from osmabench_ros.maps.announced_map import MapArrival, MapAssembler, announced_map
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.storage import SnapshotFolder, write_map
from osmabench_ros.msg import LabelInfo, RecordedMap, RunInfo, SemanticMapChunk
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from osmabench_ros.ros import qos
from osmabench_ros.ros.messages.evaluation_messages import check_run_info
from osmabench_ros.ros.messages.images import image_from_message, label_set_from_message
from osmabench_ros.ros.messages.poses import SECOND_NS, stamp_from_message
from osmabench_ros.ros.node.diagnostics import Health, Level
from osmabench_ros.ros.node.frame_receiver import Acknowledger
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node
from osmabench_ros.ros.node.participants import PERIOD_S as WATCH_PERIOD_S
from osmabench_ros.ros.node.participants import check_publishers
from osmabench_ros.ros.node.settings import MapRecorderSettings
from osmabench_ros.semantics.labels import LabelSet

# Images that are kept until run_info says which of them count; on a robot it never does.
MAX_WAITING, MAX_WAITING_BYTES = 32, 2**28

SAMPLES = 6
# Limit of frame numbers in a run of unknown length.
MAX_INDEX = 10**6


class FrameSampler:
    """Writes every n-th frame, about `SAMPLES` of them, as ``%06d.png`` numbered by frame."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.waiting: list[Image] = []
        self._run: RunInfo | None = None

    def start(self, run: RunInfo) -> None:
        """Set the first stamp and the number of frames."""
        if self._run is None:
            self._run = run
            for message in self.waiting:
                self.take(message)
            self.waiting = []

    def take(self, message: Image) -> None:
        """Count a frame, and write it if it is in the sample; RunError if it cannot be written."""
        if self._run is None:
            held_bytes = sum(len(image.data) for image in self.waiting)
            if len(self.waiting) < MAX_WAITING and held_bytes < MAX_WAITING_BYTES:
                self.waiting.append(message)
            return
        # By its stamp, so that lost frames do not shift it.
        first_ns, stamp_ns = (stamp_from_message(x.header.stamp) for x in (self._run, message))
        index = round((stamp_ns - first_ns) * float(self._run.frame_rate) / SECOND_NS)
        if not 0 <= index < (self._run.frame_count or MAX_INDEX):
            return
        every = math.ceil(self._run.frame_count / SAMPLES) or 10
        path = self._directory / f'{index:06d}.png'
        if index % every or path.exists():
            return
        claim_folder(self._directory)
        with atomic_write(path) as draft:
            pixels = image_from_message(message, topics.COLOR, color_of)
            Picture.fromarray(pixels).save(draft, 'PNG')


# The intermediate maps of the map in 'map' are in 'map_snapshots'.
SNAPSHOTS_SUFFIX = '_snapshots'

CHUNKS_LATE_AFTER_S = 5.0
ACK_TIMEOUT = Duration(seconds=2)


class MapRecorderNode(BenchmarkNode[MapRecorderSettings]):
    """Reassembles announced maps, checks them against the run's labels, writes the final one."""

    def __init__(self) -> None:
        super().__init__('map_recorder', MapRecorderSettings)
        self._written: list[Path] = []
        self._forget()

    def _forget(self) -> None:
        self.assembler = MapAssembler()
        self.label_set: LabelSet | None = None
        self.run_id = ''
        self._world_frame = ''
        self._samples: FrameSampler | None = None
        self._snapshots: SnapshotFolder | None = None
        self._final: SemanticMapMessage | None = None
        self._arrival: MapArrival | None = None
        self._frames = 0
        self._newest_stamp_ns = -1
        self._map_bytes = 0

    def configure(self) -> None:
        """Subscribe, and refuse an existing folder."""
        self._forget()
        self._directory = self._free_directory()
        if self.settings.keep_intermediate_maps:
            folder = self._directory.with_name(self._directory.name + SNAPSHOTS_SUFFIX)
            check_folder(folder)
            self._snapshots = SnapshotFolder(folder, self.settings.max_snapshots)
        self._acks = Acknowledger(self, self.get_name())
        self._recorded = self.create_publisher(
            RecordedMap, topics.RECORDED_MAP, qos.latched_profile()
        )
        if (frames := self.settings.frames_directory) is not None:
            check_folder(frames, Existing.MERGE)
            self._samples = FrameSampler(frames)
        frame = qos.frame_profile(lockstep=self.settings.pacing.lockstep)
        lossless = qos.lossless_profile()
        self.subscribe(PoseStamped, topics.CAMERA_POSE, self._on_pose, frame)
        self.subscribe(RunInfo, topics.RUN_INFO, self._on_run_info)
        self.subscribe(LabelInfo, topics.LABEL_INFO, self._on_labels)
        self.subscribe(SemanticMapMessage, topics.SEMANTIC_MAP, self._on_map)
        self.subscribe(SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, self._on_chunk, lossless)
        if self._samples is not None:
            self.subscribe(Image, topics.COLOR, self._samples.take, frame)
        self.create_timer(WATCH_PERIOD_S, self.guarded(self._look_at_arrival))

    def _free_directory(self) -> Path:
        """Return the folder of the map, numbered if this process has already filled it."""
        first = self.required('map_directory').absolute()
        directory = first
        while directory in self._written:
            number = self._written.index(directory) + 2
            directory = first.with_name(f'{first.name}_{number}')
        check_folder(directory)
        return directory

    def health(self) -> Health:
        """Return the counts of maps, and how many chunks are missing."""
        missing = self.assembler.missing_chunks
        waited_s = 0.0 if self._arrival is None else self._arrival.waited_s
        level, message = Level.OK, 'waiting for a final map'
        if missing and waited_s > CHUNKS_LATE_AFTER_S:
            level = Level.WARN
            message = f'{missing} chunks of the announced map missing for {waited_s:.0f} s'
        elif self._final is not None:
            message = f'wrote {self._directory}'
        values = {
            'maps': len(self._written),
            'intermediate_maps': len(self._snapshots or ()),
            'map_bytes': self._map_bytes,
            'missing_chunks': missing,
            'frames_acknowledged': self._frames,
        }
        return Health(level, message, values)

    def owes_result(self) -> bool:
        """Return whether a map is arriving, or must be written before the node exits."""
        unwritten = self.settings.exit_when_done and self._final is None
        return unwritten or self.assembler.missing_chunks > 0

    def _on_pose(self, message: PoseStamped) -> None:
        stamp_ns = stamp_from_message(message.header.stamp)
        if stamp_ns < self._newest_stamp_ns:
            self._start_over()
        self._newest_stamp_ns = stamp_ns
        self._frames += 1
        self._acks.acknowledge(stamp_ns)

    def _start_over(self) -> None:
        """Record another map after a reset of the run, next to the first one if it is written."""
        self.assembler = MapAssembler()
        self._final = self._arrival = None
        self._frames = 0
        self._directory = self._free_directory()

    def _on_run_info(self, message: RunInfo) -> None:
        check_run_info(message)
        self.run_id = message.run_id
        self._world_frame = message.world_frame
        if self._samples is not None:
            self._samples.start(message)

    def _on_labels(self, message: LabelInfo) -> None:
        self.label_set = label_set_from_message(message, topics.LABEL_INFO)

    def _on_map(self, message: SemanticMapMessage) -> None:
        if self.settings.participant not in ('', message.participant):
            self.assembler.ignore(message.digest)
            return
        check_publishers(self, [topics.SEMANTIC_MAP, topics.SEMANTIC_MAP_CHUNK])
        if self._final is not None:
            self._check_repeated(self._final, message)
            return
        arriving = self._arrival
        if arriving is not None and arriving.message.is_final:
            # A repetition is not a reason to wait longer.
            self._check_repeated(arriving.message, message)
        else:
            self._arrival = MapArrival(message, self.settings.chunk_timeout_s, time.monotonic())
        self._take(self.assembler.announce(message))

    def _look_at_arrival(self) -> None:
        """Give up a map that does not arrive; fail if it is the final one."""
        if self._arrival is None:
            return
        try:
            self._arrival.check(self.assembler.missing_chunks, time.monotonic())
        except ContractError as error:
            if self._arrival.message.is_final:
                raise
            self._arrival = None
            self.assembler.give_up()
            self.get_logger().warning(str(error))

    @staticmethod
    def _check_repeated(final: SemanticMapMessage, message: SemanticMapMessage) -> None:
        """Refuse another map after the final one, except its repetition."""
        if message != final:
            raise ContractError(
                f'topic "{topics.SEMANTIC_MAP}" from {message.participant}: a map came after the '
                f'final one of {final.participant}; is_final may be true once, for the last map'
            )

    def _on_chunk(self, message: SemanticMapChunk) -> None:
        if self._final is None:
            self._take(self.assembler.add(message))

    def _take(self, complete: tuple[SemanticMapMessage, bytes] | None) -> None:
        if complete is None:
            return
        announcement, payload = complete
        self._arrival = None
        if not announcement.is_final and self._snapshots is None:
            return
        self._map_bytes += len(payload)
        semantic_map = announced_map(
            announcement,
            payload,
            topics.SEMANTIC_MAP,
            TopicOptions('', self.label_set),
            agreed=self.label_set,
            world_frame=self._world_frame,
        )
        is_checked = bool(payload)
        if not announcement.is_final:
            assert self._snapshots is not None
            self._snapshots.keep(semantic_map, is_checked=is_checked)
            return
        write_map(semantic_map, self._directory, is_checked=is_checked)
        self._written.append(self._directory)
        self._final = announcement
        dense = semantic_map.dense
        recorded = RecordedMap(
            header=announcement.header,
            run_id=self.run_id,
            participant=announcement.participant,
            digest=announcement.digest,
            uri=self._directory.as_uri(),
            is_final=announcement.is_final,
            point_count=0 if dense is None else len(dense.points),
            node_count=len(semantic_map.graph.nodes),
        )
        self._recorded.publish(recorded)
        self.get_logger().info(f'wrote {self._directory}')
        if self.settings.exit_when_done:
            self._recorded.wait_for_all_acked(ACK_TIMEOUT)
            self.finish(0)


main = partial(run_node, MapRecorderNode)

if __name__ == '__main__':
    raise SystemExit(main())
