"""Publishes maps in colour for RViz and Foxglove: classes, errors, scene graph, path, images."""

from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path as PathMessage
from rclpy.publisher import Publisher
from sensor_msgs.msg import Image, PointCloud2
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from osmabench_ros.base import contract as topics
from osmabench_ros.base.images import classes_of
from osmabench_ros.errors import ContractError, MapError
from osmabench_ros.maps.announced_map import MapAssembler, announced_map
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.maps.storage import read_map
from osmabench_ros.msg import LabelInfo, RecordedMap, SemanticMapChunk
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from osmabench_ros.reports.palette import Rgb, assign_class_colors, color_labels
from osmabench_ros.reports.pictures import graph_errors
from osmabench_ros.ros import qos
from osmabench_ros.ros.messages import images
from osmabench_ros.ros.messages.evaluation_messages import path_from_uri
from osmabench_ros.ros.messages.map_messages import point_cloud_message
from osmabench_ros.ros.messages.markers import markers_of_graph
from osmabench_ros.ros.messages.poses import pose_message, stamp_to_message
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node
from osmabench_ros.ros.node.settings import MapViewerSettings
from osmabench_ros.sequences.ground_truth import read_ground_truth

MAX_POSES = 20_000
MIN_STEP_M = 0.02


class PathTrace:
    """Collects poses at a minimum distance, the newest of them."""

    def __init__(self, max_poses: int = MAX_POSES) -> None:
        self._poses: deque[PoseStamped] = deque(maxlen=max_poses)

    def __len__(self) -> int:
        return len(self._poses)

    def add(self, message: PoseStamped) -> bool:
        """Add a pose; return whether it was kept. Poses that are not finite are dropped."""
        place = _place(message)
        if not np.isfinite(place).all():
            return False
        if self._poses:
            latest = self._poses[-1]
            if message.header.frame_id != latest.header.frame_id:
                self._poses.clear()
            elif np.linalg.norm(place - _place(latest)) < MIN_STEP_M:
                return False
        self._poses.append(message)
        return True

    def message(self) -> PathMessage:
        """Return the path in the frame of its poses, with the stamp of the newest."""
        header = self._poses[-1].header if self._poses else Header()
        return PathMessage(header=header, poses=list(self._poses))


def _place(message: PoseStamped) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    position = message.pose.position
    return np.array([position.x, position.y, position.z])


PATH_PERIOD_S = 1.0
_KINDS = {
    topics.VIEW_CLASSES: PointCloud2,
    topics.VIEW_ERRORS: PointCloud2,
    topics.VIEW_GROUND_TRUTH: PointCloud2,
    topics.VIEW_GRAPH: MarkerArray,
    topics.VIEW_GRAPH_ERRORS: MarkerArray,
    topics.VIEW_PATH: PathMessage,
}


class MapViewerNode(BenchmarkNode[MapViewerSettings]):
    """Shows maps from topics or from disk; it takes no part in a run."""

    def __init__(self) -> None:
        super().__init__('map_viewer', MapViewerSettings)

    def configure(self) -> None:
        """Read the ground truth, and subscribe to maps and poses."""
        self._assembler = MapAssembler()
        self._trace = PathTrace()
        self._traced = False
        self._shown = ''
        folder = self.settings.ground_truth_directory
        self._truth = read_ground_truth(Path(folder)) if folder else None
        self._palette: Mapping[int, Rgb] | None = None
        # Images are many and large; only the newest one is of use.
        self._semantic = self.create_publisher(Image, topics.VIEW_SEMANTIC, qos.observer_profile())
        self._views: dict[str, Publisher] = {
            topic: self.create_publisher(kind, topic, qos.latched_profile())
            for topic, kind in _KINDS.items()
        }
        lossless = qos.lossless_profile()
        observer = qos.observer_profile()
        self.subscribe(SemanticMapMessage, topics.SEMANTIC_MAP, self._on_map)
        self.subscribe(SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, self._on_chunk, lossless)
        self.subscribe(RecordedMap, topics.RECORDED_MAP, self._on_recorded)
        self.subscribe(LabelInfo, topics.LABEL_INFO, self._on_labels)
        self.subscribe(Image, topics.SEMANTIC, self._on_semantic, observer)
        self.subscribe(PoseStamped, topics.CAMERA_POSE, self._on_pose, observer)
        self.create_timer(PATH_PERIOD_S, self.guarded(self._publish_path))

    def activate(self) -> None:
        """Publish the ground truth and the maps on disk."""
        if self._truth is not None:
            header = Header(frame_id=self._truth.graph.frame_id)
            surface = graph_errors.draw_truth_layers(self._truth).clouds['surface']
            self._publish_cloud(topics.VIEW_GROUND_TRUTH, surface, header)
            poses = map(pose_message, self._truth.camera_poses)
            stamped = [PoseStamped(header=header, pose=pose) for pose in poses]
            self._views[topics.VIEW_PATH].publish(PathMessage(header=header, poses=stamped))
        folder = self.settings.map_directory
        if folder:
            self._show(read_map(Path(folder)))

    def _on_map(self, message: SemanticMapMessage) -> None:
        self._show_payload(self._assembler.announce(message))

    def _on_chunk(self, chunk: SemanticMapChunk) -> None:
        self._show_payload(self._assembler.add(chunk))

    def _show_payload(self, complete: tuple[SemanticMapMessage, bytes] | None) -> None:
        if complete is None or (complete[1] and complete[0].digest == self._shown):
            return
        message, payload = complete
        options = TopicOptions('', None if self._truth is None else self._truth.label_set)
        self._show(announced_map(message, payload, topics.SEMANTIC_MAP, options))
        self._shown = message.digest

    def _on_recorded(self, message: RecordedMap) -> None:
        if message.digest == self._shown:
            return
        try:
            self._show(read_map(path_from_uri(message.uri, f'topic "{topics.RECORDED_MAP}": uri')))
        except (ContractError, MapError) as error:
            # The recorder may be on another machine; the topics bring the map then.
            self.get_logger().warning(f'cannot show the recorded map: {error}')
            return
        self._shown = message.digest

    def _show(self, semantic_map: SemanticMap) -> None:
        header = Header(
            frame_id=semantic_map.header.frame_id,
            stamp=stamp_to_message(semantic_map.header.stamp_ns),
        )
        layers = graph_errors.draw_map_layers(
            semantic_map, self._truth, self.settings.max_distance_m
        )
        clouds, graphs = layers.clouds, layers.graphs
        self._publish_graph(topics.VIEW_GRAPH, graphs['graph'], header)
        self._publish_cloud(topics.VIEW_CLASSES, clouds.get('class') or semantic_map.dense, header)
        if self._truth is not None:
            self._publish_cloud(topics.VIEW_ERRORS, clouds.get('errors'), header)
            self._publish_graph(topics.VIEW_GRAPH_ERRORS, graphs['errors'], header)
        self.get_logger().info(f'shows a map of {len(semantic_map.graph.nodes)} nodes')

    def _publish_graph(
        self, topic: str, shown: graph_errors.ColouredGraph, header: Header
    ) -> None:
        self._views[topic].publish(markers_of_graph(shown.graph, header, shown.colors))

    def _publish_cloud(self, topic: str, dense: DenseMap | None, header: Header) -> None:
        if dense is not None:
            limit = self.settings.max_points
            self._views[topic].publish(point_cloud_message(dense, header, max_points=limit))

    def _on_labels(self, message: LabelInfo) -> None:
        self._palette = assign_class_colors(
            images.label_set_from_message(message, topics.LABEL_INFO)
        )

    def _on_semantic(self, message: Image) -> None:
        if self._palette is None or not self._semantic.get_subscription_count():
            return
        labels = images.image_from_message(message, topics.SEMANTIC, classes_of)
        picture = color_labels(labels.ravel(), self._palette).reshape(*labels.shape, 3)
        header = message.header
        self._semantic.publish(
            images.image_to_message(picture, 'rgb8', header.stamp, header.frame_id)
        )

    def _on_pose(self, message: PoseStamped) -> None:
        self._traced |= self._trace.add(message)

    def _publish_path(self) -> None:
        if self._traced:
            self._traced = False
            self._views[topics.VIEW_PATH].publish(self._trace.message())


main = partial(run_node, MapViewerNode)

if __name__ == '__main__':
    raise SystemExit(main())
