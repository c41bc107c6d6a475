"""A room of coloured boxes, its frames and ground truth by rays; for tests of mappers."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.sequences.ground_truth import seen_instances
from support.world.frames import map_frames
from support.world.graphs import ground_truth_of, nodes_of

LABELS = LabelSet.from_names('boxes', ['cup', 'table', 'sofa', 'shelf'], ['floor', 'wall'])


@dataclass(frozen=True)
class Box:
    """A solid between two corners."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]
    label: str
    color: tuple[int, int, int]


# A room with four pieces of furniture; instance i + 1 is the i-th box.
ROOM = (
    Box((-3, -3, -0.1), (3, 3, 0), 'floor', (189, 140, 89)),
    Box((-3.1, -3, 0), (-3, 3, 2.5), 'wall', (237, 237, 232)),
    Box((3, -3, 0), (3.1, 3, 2.5), 'wall', (237, 237, 232)),
    Box((-3, 3, 0), (3, 3.1, 2.5), 'wall', (237, 237, 232)),
    Box((-3, -3.1, 0), (3, -3, 2.5), 'wall', (237, 237, 232)),
    Box((1.0, -0.6, 0), (1.8, 0.6, 0.7), 'table', (128, 82, 46)),
    Box((1.3, -0.1, 0.7), (1.4, 0.0, 0.85), 'cup', (194, 33, 31)),
    Box((-2.9, -1.0, 0), (-2.1, 1.0, 0.6), 'sofa', (38, 82, 173)),
    Box((-0.8, 2.5, 0), (0.8, 2.95, 1.6), 'shelf', (56, 133, 64)),
)


def look(position, target):
    """Return the optical pose of a camera at a position that looks at a target."""
    forward = np.subtract(target, position).astype(float)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 0, 1])
    right /= np.linalg.norm(right)
    return Pose(np.column_stack([right, np.cross(forward, right), forward]), np.array(position))


def render(boxes, pose, intrinsics, index=0, light=None):
    """Render a frame by the slab method; `light` maps (points, colours) to colours."""
    rays = intrinsics.rays().reshape(-1, 3).astype(float) @ pose.rotation.T
    depth = np.full(len(rays), np.inf)
    hit = np.full(len(rays), -1)
    with np.errstate(divide='ignore'):
        inverse = 1.0 / rays
    for i, box in enumerate(boxes):
        near, far = (
            pick(np.multiply(np.subtract(corners, pose.translation), inverse[:, None]), axis=1)
            for pick, corners in ((np.min, (box.low, box.high)), (np.max, (box.low, box.high)))
        )
        enter, leave = near.max(axis=1), far.min(axis=1)
        closer = (enter < leave) & (enter > 0) & (enter < depth)
        depth[closer], hit[closer] = enter[closer], i
    shape = (intrinsics.height, intrinsics.width)
    labels = np.array([*(LABELS.id_of(box.label) for box in boxes), UNLABELLED], np.uint16)
    colors = np.array([*(box.color for box in boxes), (0, 0, 0)], np.uint8)[hit]
    if light is not None:
        colors = light(pose, depth, colors)
    return Frame(
        index=index,
        stamp_ns=index * 100_000_000,
        camera_pose=pose,
        intrinsics=intrinsics,
        color=colors.reshape(*shape, 3),
        depth_m=depth.reshape(shape).astype(np.float32),
        semantic=labels[hit].reshape(shape),
        instance=(hit + 1).reshape(shape).astype(np.int32),
    )


def view(place, target, intrinsics, index=0, light=None):
    """Render the room from a place to a target."""
    return render(ROOM, look(place, target), intrinsics, index, light)


def frames(boxes=ROOM, count=12, size=(160, 120), light=None):
    """Render the views of a camera that turns about the middle of the room."""
    intrinsics = Intrinsics.from_hfov(*size, np.pi / 2)
    result = []
    for i in range(count):
        angle = 2 * np.pi * i / count
        out = np.array([np.cos(angle), np.sin(angle), 0.0])
        pose = look(-0.4 * out + [0, 0, 1.4], 2 * out + [0, 0, 0.6])
        result.append(render(boxes, pose, intrinsics, i, light))
    return result


def map_room(mapper, frames, *, label_set=LABELS, seed=0, **options):
    """Return the final map that a mapper, of a class and with options, makes of frames."""
    return map_frames(mapper(label_set=label_set, seed=seed, options=options), frames)


def share_labelled(dense, truth):
    """Return the share of true points of which the nearest point of a map has the label."""
    _, nearest = cKDTree(dense.points).query(truth.points)
    return float((dense.labels[nearest] == truth.labels).mean())


def visible_cloud(sequence):
    """Return the labelled points of all pixels of some frames."""
    return LabelledCloud(
        np.concatenate([frame.world_points() for frame in sequence]),
        np.concatenate([frame.semantic[frame.valid] for frame in sequence]).astype(np.int32),
        np.concatenate([frame.instance[frame.valid] for frame in sequence]),
    )


def ground_truth(sequence, boxes=ROOM, surface=None, **changes):
    """Return the ground truth of boxes, seen where some frames show them."""
    surface = visible_cloud(sequence) if surface is None else surface
    graph = SceneGraph(nodes_of(((box.label, box.low, box.high) for box in boxes), LABELS))
    known = {
        'label_set': LABELS,
        'camera_poses': tuple(frame.camera_pose for frame in sequence),
        'intrinsics': sequence[0].intrinsics,
        'seen_instances': seen_instances(surface.instances, 1),
    }
    return ground_truth_of(graph, surface, **{**known, **changes})
