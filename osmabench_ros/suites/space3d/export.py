"""Any scene as a scene folder of Space3D-Bench, with questions that the scene answers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.ground_truth import ground_truth_graph
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.simulation.navigation import NavigationMap
from osmabench_ros.suites.space3d.folder import ReferenceAnswer, write_folder
from osmabench_ros.suites.space3d.suite import SPACE3D
from osmabench_ros.vqa.answering.pictures import encoded
from osmabench_ros.vqa.answering.ways import HEIGHT_M, RADIUS_M
from osmabench_ros.vqa.exact.generation import generate_questions, ways_on
from osmabench_ros.vqa.questions import AnswerType, QueryKind, Question

QUESTIONS = 120
POINTS_PER_M2 = 400.0
PICTURE_PX, PICTURE_RAD = 768, math.radians(60.0)

_CRITERIA = {
    AnswerType.YES_NO: 'The answer should say yes or no as the ground truth does.',
    AnswerType.INTEGER: 'The answer should contain the number of the ground truth.',
    AnswerType.TEXT: 'The answer should name the same thing as the ground truth.',
    AnswerType.COORDINATES: 'Each coordinate may differ from the ground truth by {tolerance} m.',
    AnswerType.NUMBER: 'The number may differ from the ground truth by {tolerance}.',
}


def export_space3d(
    scene: Scene,
    directory: Path,
    *,
    seed: int = 0,
    images: bool = False,
    overwrite: bool = False,
) -> list[Question]:
    """Write a scene as a scene folder of Space3D-Bench, and return its questions.

    The whole scene counts as seen. Objects keep their instance ids; the parts of the building are
    left out, as in the published detections. The navmesh has two triangles for each free cell of
    the navigation grid. With `images` there is a picture of each room from above.
    """
    graph = ground_truth_graph(scene)
    questions = _questions(scene, graph, seed)
    numbered = {str(i): question for i, question in enumerate(questions, start=1)}
    write_folder(
        directory,
        questions={number: question.text for number, question in numbered.items()},
        references={number: reference_of(question) for number, question in numbered.items()},
        detections=_detections(graph),
        navmesh=navmesh_of(
            NavigationMap.of_scene(scene, radius_m=RADIUS_M, height_m=HEIGHT_M, seed=seed)
        ),
        images=dict(_room_pictures(scene)) if images else None,
        overwrite=overwrite,
    )
    return questions


def _room_pictures(scene: Scene) -> Iterator[tuple[str, bytes]]:
    """Yield a PNG of every room, or of the scene without any, seen from above its ceiling."""
    from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator

    view = Intrinsics.from_hfov(PICTURE_PX, PICTURE_PX, PICTURE_RAD)
    # The light of the ceilings' lamps stays, so that colours are those of pictures from within.
    open_above = tuple(item for item in scene.objects if scene.class_name(item) != 'ceiling')
    places = {room.name: room.box for room in scene.rooms} or {scene.name: scene.box}
    with closing(OpenGLSimulator(replace(scene, objects=open_above), view)) as simulator:
        for name, box in places.items():
            above_m = float(box.size[:2].max()) / 2 / math.tan(PICTURE_RAD / 2)
            x, y, _ = box.center.tolist()
            # Right is the world's x, and up in the picture its y.
            down = np.diag([1.0, -1.0, -1.0])
            pose = Pose(down, np.array([x, y, float(box.maximum[2]) + above_m]))
            picture = encoded(simulator.render(pose).color).data
            yield f'{re.sub(r"[^A-Za-z0-9_-]+", "_", name)}.png', picture


def _questions(scene: Scene, graph: SceneGraph, seed: int) -> list[Question]:
    from osmabench_ros.scenes.visibility import sample_surface

    surface = sample_surface(scene, POINTS_PER_M2, seed)
    nothing = surface.select(np.zeros(len(surface.points), bool))
    return generate_questions(
        graph,
        scene.by_instance,
        scene=scene.name,
        seed=seed,
        label_set=scene.label_set,
        count=QUESTIONS,
        asked=SPACE3D,
        ways=ways_on(nothing, surface),
    )


def reference_of(question: Question) -> ReferenceAnswer:
    """Return what `ground_truth.json` says of a question."""
    unit = ' m2' if question.provenance['kind'] == QueryKind.ROOM_AREA.value else ' m'
    answer = question.answer
    if isinstance(answer, tuple):
        text = f'[{", ".join(map(str, answer))}]'
    elif question.answer_type is AnswerType.NUMBER:
        text = f'{answer}{unit}'
    else:
        text = str(answer)
    criterion = _CRITERIA[question.answer_type].format(tolerance=f'{question.tolerance:g}')
    return ReferenceAnswer(answer=text, prompt=criterion)


def _detections(graph: SceneGraph) -> dict[str, object]:
    rooms = {
        room.id: (room.source_id or room.label, room.box)
        for room in graph.of_kind(NodeKind.ROOM)
        if room.box is not None
    }
    found: dict[str, object] = {}
    objects: dict[int | None, dict[str, object]] = {None: {}, **{key: {} for key in rooms}}
    for node in graph.of_kind(NodeKind.OBJECT):
        if node.box is None or node.class_id == UNLABELLED:
            continue
        room = node.parent if node.parent in rooms else None
        objects[room][str(node.id)] = {'class_name': node.label, **_extent(node.box)}
    for key, (name, box) in rooms.items():
        found[name] = {**_extent(box), 'objects': objects[key]}
    if objects[None]:
        found['objects'] = objects[None]
    return found


def _extent(box: AxisAlignedBox) -> dict[str, list[float]]:
    return {
        'center': [round(value, 4) for value in box.center.tolist()],
        'sizes': [round(value, 4) for value in box.size.tolist()],
    }


def navmesh_of(grid: NavigationMap) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return vertices (V, 3) and triangles (F, 3) of the free places of a navigation grid."""
    layers, columns, rows = np.nonzero(grid.free)
    shifts = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    cells = np.column_stack([columns, rows])[:, None] + shifts
    heights = np.repeat(grid.heights_m[layers, columns, rows], 4)
    keys = np.column_stack([np.repeat(layers, 4), cells.reshape(-1, 2)])
    corners, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    vertices = np.column_stack([grid.origin_m + corners[:, 1:] * grid.cell_m, heights[first]])
    quads = place.reshape(-1, 4)
    return vertices, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]).astype(np.int64)
