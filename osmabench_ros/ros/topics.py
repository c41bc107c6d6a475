"""Names and message types of the topic contract; all names are relative and remappable."""

from __future__ import annotations

COLOR = 'camera/color/image_raw'
DEPTH = 'camera/depth/image_rect'
SEMANTIC = 'camera/semantic/image_raw'
INSTANCE = 'camera/instance/image_raw'
COLOR_INFO = 'camera/color/camera_info'
DEPTH_INFO = 'camera/depth/camera_info'
CAMERA_POSE = 'ground_truth/camera_pose'
ODOMETRY = 'ground_truth/odometry'
LIGHTING = 'lighting'
CLOCK = '/clock'
TF = '/tf'
TF_STATIC = '/tf_static'

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

FRAME_TOPICS = (
    COLOR,
    DEPTH,
    SEMANTIC,
    INSTANCE,
    COLOR_INFO,
    DEPTH_INFO,
    CAMERA_POSE,
    ODOMETRY,
)
"""Topics that carry one message a frame, all with the stamp of the frame."""

WORLD_FRAME = 'world'
BASE_FRAME = 'base_link'
CAMERA_LINK_FRAME = 'camera_link'
CAMERA_FRAME = 'camera_color_optical_frame'
