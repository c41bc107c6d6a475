"""The topic contract: names and types of topics, nodes and frames; needs no ROS."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

START_RUN = 'start_run'
PAUSE_RUN = 'pause_run'
STEP_RUN = 'step_run'
RESET_RUN = 'reset_run'

# Lets the map adapter know that no further frame will follow, where no bridge says so.
FINISH_MAP = 'finish_map'


COLOR = 'camera/color/image_raw'
DEPTH = 'camera/depth/image_rect'
SEMANTIC = 'camera/semantic/image_raw'
INSTANCE = 'camera/instance/image_raw'
# Colours of the surfaces without light; for mappers that ask for ground truth of them.
ALBEDO = 'camera/albedo/image_raw'
COLOR_INFO = 'camera/color/camera_info'
DEPTH_INFO = 'camera/depth/camera_info'
CAMERA_POSE = 'ground_truth/camera_pose'
ODOMETRY = 'ground_truth/odometry'
LIGHTING = 'lighting'
CLOCK = '/clock'
TF = '/tf'
TF_STATIC = '/tf_static'
TF_TYPE = 'tf2_msgs/msg/TFMessage'

RUN_INFO = 'run_info'
RUN_STATE = 'run_state'
LABEL_INFO = 'label_info'
VISION_LABEL_INFO = 'camera/semantic/label_info'
FRAME_ACK = 'frame_ack'
SEMANTIC_MAP = 'semantic_map'
SEMANTIC_MAP_CHUNK = 'semantic_map_chunk'
SEMANTIC_MAP_POINTS = 'semantic_map_points'
SEMANTIC_MAP_MARKERS = 'semantic_map_markers'
SEMANTIC_MAP_DETECTIONS = 'semantic_map_detections'
RECORDED_MAP = 'recorded_map'
EVALUATION = 'evaluation'
EVALUATE = 'evaluate'
DIAGNOSTICS = '/diagnostics'

VIEW_CLASSES = 'view/classes'
VIEW_ERRORS = 'view/errors'
VIEW_GRAPH = 'view/graph'
VIEW_GRAPH_ERRORS = 'view/graph_errors'
VIEW_GROUND_TRUTH = 'view/ground_truth'
VIEW_SEMANTIC = 'view/semantic'
VIEW_PATH = 'view/path'

# Topics that carry one message a frame, all with the stamp of the frame.
FRAME_TOPICS = (COLOR, DEPTH, SEMANTIC, INSTANCE, COLOR_INFO, DEPTH_INFO, CAMERA_POSE, ODOMETRY)

# Images that no camera gives: a method that reads them does not compete.
GROUND_TRUTH_IMAGES = (SEMANTIC, INSTANCE, ALBEDO)

WORLD_FRAME = 'world'
BASE_FRAME = 'base_link'
CAMERA_LINK_FRAME = 'camera_link'
CAMERA_FRAME = 'camera_color_optical_frame'

BRIDGE = 'simulator_bridge'
# Node and participant that publishes the map, whatever the method.
MAPPER = 'mapper'
RECORDER = 'map_recorder'
EVALUATOR = 'evaluator'
BAG_RECORDER = 'bag_recorder'
BAG_PLAYER = 'bag_player'

IMAGE, CAMERA_INFO = 'sensor_msgs/msg/Image', 'sensor_msgs/msg/CameraInfo'
COMPRESSED_IMAGE = 'sensor_msgs/msg/CompressedImage'
POINT_CLOUD: Final = 'sensor_msgs/msg/PointCloud2'
MARKERS = 'visualization_msgs/msg/MarkerArray'


class Delivery(Enum):
    """Which QoS profile of qos.py a topic has."""

    FRAME = 'frame'
    LATCHED = 'latched'
    LOSSLESS = 'lossless'
    CLOCK = 'clock'


@dataclass(frozen=True)
class ContractTopic:
    """One topic with its message type; only `publisher` publishes it in a run.

    Of FRAME_ACK every participant is one.
    """

    name: str
    message_type: str
    delivery: Delivery
    purpose: str
    publisher: str
    required: bool = False


_FRAME, _LATCHED, _LOSSLESS = Delivery.FRAME, Delivery.LATCHED, Delivery.LOSSLESS
_POSE, _ODOMETRY = 'geometry_msgs/msg/PoseStamped', 'nav_msgs/msg/Odometry'
_OURS = 'osmabench_ros/msg/'

# All that a run needs; docs/topics.md also has transforms and topics for viewers.
CONTRACT = (
    ContractTopic(COLOR, IMAGE, _FRAME, 'colour images', BRIDGE, True),
    ContractTopic(DEPTH, IMAGE, _FRAME, 'depth images', BRIDGE, True),
    ContractTopic(SEMANTIC, IMAGE, _FRAME, 'class ids', BRIDGE),
    ContractTopic(INSTANCE, IMAGE, _FRAME, 'instance ids', BRIDGE),
    ContractTopic(COLOR_INFO, CAMERA_INFO, _FRAME, 'colour camera', BRIDGE, True),
    ContractTopic(DEPTH_INFO, CAMERA_INFO, _FRAME, 'depth camera', BRIDGE),
    ContractTopic(CAMERA_POSE, _POSE, _FRAME, 'ground-truth pose', BRIDGE),
    ContractTopic(ODOMETRY, _ODOMETRY, _FRAME, 'ground-truth base pose', BRIDGE),
    ContractTopic(CLOCK, 'rosgraph_msgs/msg/Clock', Delivery.CLOCK, 'time of the frames', BRIDGE),
    ContractTopic(LIGHTING, _OURS + 'LightingState', _LATCHED, 'current lights', BRIDGE),
    ContractTopic(RUN_INFO, _OURS + 'RunInfo', _LATCHED, 'identity of the run', BRIDGE),
    ContractTopic(RUN_STATE, _OURS + 'RunState', _LATCHED, 'progress of the run', BRIDGE),
    ContractTopic(LABEL_INFO, _OURS + 'LabelInfo', _LATCHED, 'names of the class ids', BRIDGE),
    ContractTopic(FRAME_ACK, _OURS + 'FrameAck', _LOSSLESS, 'acknowledgements', RECORDER),
    ContractTopic(SEMANTIC_MAP, _OURS + 'SemanticMap', _LATCHED, 'the map', MAPPER),
    ContractTopic(
        SEMANTIC_MAP_CHUNK, _OURS + 'SemanticMapChunk', _LOSSLESS, 'pieces of the map', MAPPER
    ),
    ContractTopic(
        SEMANTIC_MAP_POINTS, POINT_CLOUD, _LATCHED, 'points of the map for RViz', MAPPER
    ),
    ContractTopic(SEMANTIC_MAP_MARKERS, MARKERS, _LATCHED, 'scene graph for RViz', MAPPER),
    ContractTopic(RECORDED_MAP, _OURS + 'RecordedMap', _LATCHED, 'where the map is', RECORDER),
    ContractTopic(EVALUATION, _OURS + 'EvaluationReport', _LATCHED, 'every figure', EVALUATOR),
)

TYPES = {topic.name: topic.message_type for topic in CONTRACT}
