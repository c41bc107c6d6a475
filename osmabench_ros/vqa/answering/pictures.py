"""Pictures for language models: of the points of a map, frames of a run, images of questions."""

import math
import re
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.base.images import encode_image, read_image
from osmabench_ros.errors import QuestionError
from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.language.model import ImagePart
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.vqa.questions import Inquiry

# Longer edges of files are scaled down to this.
MOST_PX = 1024

# Views from above leave out all that is higher above the lowest point: ceilings, lintels, lamps.
CUT_M = 2.0

_SPLAT_M = 0.06
_MOST_RADIUS_PX = 8
_NEAR_M = 0.05
_BACKGROUND = 255
_TOP_PX = 768
_GRAY = 160


def list_kept_frames(folder: Path) -> dict[int, Path]:
    """Return the images of a folder in order; the digits of a name are the frame's index."""
    found = {}
    for path in sorted(folder.glob('*')):
        digits = re.findall(r'\d+', path.stem)
        if digits and path.suffix.lower() in ('.png', '.jpg', '.jpeg'):
            found[int(digits[-1])] = path
    return dict(sorted(found.items()))


def photo(path: Path) -> ImagePart:
    """Return an image file as JPEG, scaled down to MOST_PX; raises QuestionError."""
    from PIL import Image

    picture = read_image(path, QuestionError).convert('RGB')
    picture.thumbnail((MOST_PX, MOST_PX), Image.Resampling.LANCZOS)
    return ImagePart(encode_image(picture, 'JPEG', quality=90), 'image/jpeg')


def question_images(item: Inquiry, folder: Path | None) -> tuple[ImagePart, ...]:
    """Return the images of a question; none without a folder, for answerers that see nothing."""
    return () if folder is None else tuple(photo(folder / name) for name in item.images)


def camera_at(eye_m: ArrayLike, target_m: ArrayLike) -> Pose:
    """Return the optical pose of a camera that looks at a point, level; ValueError at its own."""
    from scipy.spatial.transform import Rotation

    eye = np.asarray(eye_m, np.float64)
    way = np.subtract(target_m, eye_m, dtype=np.float64)
    across = math.hypot(way[0], way[1])
    if math.hypot(across, way[2]) < 1e-6:
        raise ValueError('the camera is at the point that it looks at')
    angles_rad = math.atan2(way[1], way[0]), math.atan2(-way[2], across)
    turned = Rotation.from_euler('ZY', angles_rad).as_matrix()
    return Pose(turned, eye) @ OPTICAL_IN_LINK


def view_of_points(
    points_m: NDArray[np.floating],
    colors: NDArray[np.uint8],
    camera: Pose,
    intrinsics: Intrinsics,
) -> NDArray[np.uint8]:
    """Draw points (N, 3) as squares of a few centimetres, near ones before far ones.

    Returns an image (height, width, 3), white where there is no point.
    """
    seen = camera.inverse().transform(points_m)
    front = seen[:, 2] > _NEAR_M
    seen = seen[front]
    colors = colors[front]
    pixels = np.rint(intrinsics.project(seen)).astype(np.int64)
    radius = np.rint(_SPLAT_M / 2 * intrinsics.fx / seen[:, 2]).astype(np.int64)
    size = (intrinsics.height, intrinsics.width)
    return _paint_squares(pixels, seen[:, 2], np.minimum(radius, _MOST_RADIUS_PX), colors, size)


def _paint_squares(
    pixels: NDArray[np.int64],
    depth: NDArray[np.floating],
    radius: NDArray[np.int64],
    colors: NDArray[np.uint8],
    size: tuple[int, int],
) -> NDArray[np.uint8]:
    """Paint squares, the one with the least depth on top."""
    height, width = size
    reach = (pixels >= -_MOST_RADIUS_PX).all(1)
    reach &= (pixels < np.array([width, height]) + _MOST_RADIUS_PX).all(1)
    # The higher row wins a pixel, so the nearest point comes last.
    order = np.flatnonzero(reach)[np.argsort(-depth[reach], kind='stable')]
    pixels = pixels[order]
    radius = radius[order]
    colors = colors[order]
    best = np.full(height * width, -1, np.int64)
    most = int(radius.max(initial=0))
    for dy in range(-most, most + 1):
        for dx in range(-most, most + 1):
            rows = np.flatnonzero(radius >= max(abs(dx), abs(dy)))
            x, y = (pixels[rows] + (dx, dy)).T
            inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
            np.maximum.at(best, y[inside] * width + x[inside], rows[inside])
    image = np.full((height * width, 3), _BACKGROUND, np.uint8)
    image[best >= 0] = colors[best[best >= 0]]
    return image.reshape(height, width, 3)


def points_of(semantic_map: SemanticMap) -> tuple[NDArray[np.float32], NDArray[np.uint8]] | None:
    """Return the valid points of a map and their colours, grey without; None if there are none."""
    dense = semantic_map.dense
    if dense is None:
        return None
    valid = np.isfinite(dense.points).all(axis=1)
    valid &= True if dense.valid is None else dense.valid
    gray = np.full(dense.points.shape, _GRAY, np.uint8)
    colors = gray if dense.colors is None else dense.colors
    return (dense.points[valid], colors[valid]) if valid.any() else None


def four_views(semantic_map: SemanticMap) -> list[NDArray[np.uint8]]:
    """Draw a map without its ceiling from above its four sides: -x, +x, -y, +y."""
    found = points_of(semantic_map)
    if found is None:
        return []
    points, colors = _without_ceiling(*found)
    low = points.min(axis=0).astype(float)
    high = points.max(axis=0).astype(float)
    middle = (low + high) / 2
    reach = float(np.linalg.norm(high - low)) / 2 + 0.5
    camera = Intrinsics.from_hfov(640, 480, math.radians(70))
    away = 1.6 * reach
    sides = ((-1, 0), (1, 0), (0, -1), (0, 1))
    eyes = [middle + away * np.array([0.7 * x, 0.7 * y, 0.7]) for x, y in sides]
    return [view_of_points(points, colors, camera_at(eye, middle), camera) for eye in eyes]


def _without_ceiling(
    points: NDArray[np.float32], colors: NDArray[np.uint8]
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    # A few points below the floor must not lower the cut.
    low = points[:, 2] <= float(np.quantile(points[:, 2], 0.005)) + CUT_M
    return points[low], colors[low]


def top_view_of(semantic_map: SemanticMap, *, labels: bool) -> tuple[NDArray[np.uint8], str]:
    """Draw a map from straight above, x to the right and y up; with its axes in words.

    With labels each object's name is written at the centre of its box. Without points only
    the boxes are drawn; ValueError if there are none either.
    """
    from PIL import Image, ImageDraw

    boxes = {n: n.box for n in semantic_map.graph.of_kind(NodeKind.OBJECT) if n.box is not None}
    found = points_of(semantic_map)
    if found is not None:
        points, colors = _without_ceiling(*found)
    elif boxes:
        ends = [end for box in boxes.values() for end in (box.minimum, box.maximum)]
        points = np.array(ends, np.float32)
        colors = np.zeros((len(ends), 3), np.uint8)
    else:
        raise ValueError('the map has no points and no boxes to draw')
    low = points[:, :2].min(axis=0) - 0.2
    high = points[:, :2].max(axis=0) + 0.2
    cell_m = max(float((high - low).max()) / _TOP_PX, 0.005)
    width, height = (max(1, math.ceil(edge / cell_m)) for edge in (high - low).tolist())

    def pixels(xy: NDArray[np.floating]) -> NDArray[np.int64]:
        columns = (xy[:, 0] - low[0]) / cell_m
        rows = (high[1] - xy[:, 1]) / cell_m
        return np.stack([columns, rows], axis=1).astype(np.int64)

    if found is not None:
        radius = min(_MOST_RADIUS_PX, round(_SPLAT_M / 2 / cell_m))
        radii = np.full(len(points), radius)
        image = _paint_squares(pixels(points), -points[:, 2], radii, colors, (height, width))
    else:
        image = np.full((height, width, 3), _BACKGROUND, np.uint8)
    canvas = Image.fromarray(image)
    draw = ImageDraw.Draw(canvas)
    for node, box in boxes.items():
        corners = pixels(np.array([box.minimum, box.maximum]))
        if found is None:
            left, right = sorted(corners[:, 0].tolist())
            top, bottom = sorted(corners[:, 1].tolist())
            draw.rectangle((left, top, right, bottom), outline='gray')
        if labels and node.label:
            x, y = corners.mean(axis=0).tolist()
            # Default fonts only have Latin letters.
            name = normalised_name(node.label).encode('latin-1', 'replace').decode('latin-1')
            draw.text((x, y), name, fill='black', anchor='mm', stroke_width=2, stroke_fill='white')
    (x0, y0), (x1, y1) = low.tolist(), high.tolist()
    axes = f'x runs right from {x0:.2f} to {x1:.2f} m, y runs up from {y0:.2f} to {y1:.2f} m'
    return np.asarray(canvas), axes


def encoded(image: NDArray[np.uint8]) -> ImagePart:
    """Return an image as PNG."""
    from PIL import Image

    return ImagePart(encode_image(Image.fromarray(image), 'PNG'))
