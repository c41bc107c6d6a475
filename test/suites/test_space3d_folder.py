import io
import json
import math

import numpy as np
import pytest
from PIL import Image
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from support.world.scenes import write_space3d_folder

from osmabench_ros.errors import OsmabenchError, QuestionError
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.suites.space3d.folder import (
    ReferenceAnswer,
    SceneFolder,
    ShownAnswer,
    TriangleNavigation,
    parse_navmesh,
)

DOOR_POSTS = ((4.0, 1.0), (4.2, 1.0))
"""Corners that a path between the upper parts of both rooms bends around."""


@pytest.fixture
def folder(tmp_path):
    return SceneFolder(write_space3d_folder(tmp_path / 'two_rooms'))


def test_a_folder_reads_back_as_it_was_written(folder):
    assert folder.scene == 'two_rooms'
    assert folder.questions['1'] == 'How many chairs are there in the room?'
    assert folder.answers()['1'] == 'There are 5 chairs.'
    image = ShownAnswer(
        image_path='data/two_rooms/img/q2.png', example_answer='They face each other.'
    )
    assert folder.references['2'] == ReferenceAnswer(answer=image, prompt='Decide by the image.')
    assert folder.references['3'].answer == '7.903 m'
    assert Image.open(io.BytesIO(folder.image('2'))).getpixel((0, 0)) == (200, 30, 30)
    vertices, triangles = parse_navmesh((folder.path / 'misc/navmesh.txt').read_text(), 'n')
    assert (len(vertices), len(triangles)) == (12, 8)
    np.testing.assert_allclose(vertices[8], (4.2, 1, 0))
    assert triangles[2].tolist() == [2, 3, 4]


def test_detections_make_a_graph_with_rooms_and_relations(folder):
    graph = folder.graph
    by_source = {node.source_id: node for node in graph.nodes}
    sofa, book, bed = (by_source[key] for key in ('0', '4', '7'))
    assert (sofa.id, sofa.label) == (1, 'sofa')
    np.testing.assert_allclose(sofa.box.minimum, (0, 3.1, 0))
    np.testing.assert_allclose(sofa.box.maximum, (2, 3.9, 0.8))
    room = by_source['bedroom']
    assert room.kind is NodeKind.ROOM
    assert bed.parent == room.id
    relations = {(edge.source, edge.type, edge.target) for edge in graph.edges}
    assert (book.id, 'on', sofa.id) in relations


def test_objects_beside_the_rooms_are_assigned_by_their_centres(folder):
    file = folder.path / 'misc/detections.json'
    rooms = json.loads(file.read_text())
    objects = {'9': {'class_name': 'tree', 'center': [20, 0, 0], 'sizes': [1, 1, 1]}}
    for room in rooms.values():
        objects.update(room.pop('objects'))
    file.write_text(json.dumps({**rooms, 'objects': objects}))
    assert folder.detections.room_of == {0: 'living room', 4: 'living room', 7: 'bedroom'}


def replaced(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(('file', 'old', 'new', 'fault'), [
    ('questions.json', '"How many', '3, "x": "', r'questions\.json'),
    ('ground_truth.json', '"3": {', '"8": {', 'question 3 of questions.json is missing'),
    ('ground_truth.json', '"prompt"', '"promt"', 'promt'),
    ('misc/detections.json', '"class_name": "bed"', '"class_name": ""', 'class_name'),
    ('misc/detections.json', '"7"', '"seven"', 'object id "seven" is not a number'),
    ('misc/detections.json', '"7"', '"4"', 'object 4 is there twice'),
    ('misc/detections.json', '1.4,', '-1.4,', 'object 7: sizes'),
    ('misc/navmesh.txt', '12 8\n', '12 9\n', '12 vertices and 9 triangles are announced'),
    ('misc/navmesh.txt', '12 8\n', '12\n', r'navmesh\.txt:1'),
    ('misc/navmesh.txt', '8 4 0\n', '8 4\n', r'navmesh\.txt:12: must have three numbers'),
    ('misc/navmesh.txt', '8 4 0\n', '8 nan 0\n', r'navmesh\.txt:12: coordinates must be finite'),
    ('misc/navmesh.txt', '8 10 11', '8 10 12', r'navmesh\.txt:21: vertices are numbered 0 to 11'),
])  # fmt: skip
def test_what_is_malformed_is_named(folder, file, old, new, fault):
    replaced(folder.path / file, old, new)
    with pytest.raises(QuestionError, match=fault):
        _ = (folder.questions, folder.references, folder.detections, folder.navigation)


def test_missing_files_foreign_answers_and_broken_pictures_are_named(folder, tmp_path):
    (tmp_path / 'other.json').write_text('{"17": "yes"}')
    with pytest.raises(QuestionError, match=r'other\.json: answer 17 has no question'):
        folder.answers(tmp_path / 'other.json')
    (folder.path / 'img/q2.png').write_bytes(b'no picture')
    with pytest.raises(QuestionError, match=r'q2\.png is not an image'):
        folder.image('2')
    (folder.path / 'img/q2.png').unlink()
    with pytest.raises(QuestionError, match=r'q2\.png'):
        folder.image('2')
    with pytest.raises(QuestionError, match='question 1 has no image'):
        folder.image('1')
    (folder.path / 'answers.json').unlink()
    with pytest.raises(OsmabenchError, match=r'answers\.json'):
        folder.answers()


def test_ways_bend_around_the_door_post_and_ends_are_snapped(folder):
    navigation = folder.navigation
    start, goal = (1.0, 3.5, 0.4), (7.0, 3.2, 0.3)
    first, second = DOOR_POSTS
    true_m = math.dist(start[:2], first) + 0.2 + math.dist(second, goal[:2])
    found_m = navigation.distance_m(start, goal)
    assert true_m - 1e-9 <= found_m <= 1.003 * true_m
    assert navigation.distance_m(goal, start) == pytest.approx(found_m)
    # Outside of the mesh: from the nearest point of it.
    outside_m = navigation.distance_m((-1.0, 3.5, 0.0), (1.0, 3.5, 0.0))
    assert outside_m == pytest.approx(1.0, rel=0.003)
    np.testing.assert_allclose(navigation.snapped((2.0, 5.0, 3.0))[0], (2, 4, 0))


def grid_mesh(free, cell_m):
    corners = {}
    faces = []
    for x, y in np.argwhere(free):
        a, b, c, d = (
            corners.setdefault(place, len(corners))
            for place in ((x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1))
        )
        faces += [(a, b, c), (a, c, d)]
    points = np.array([(x * cell_m, y * cell_m, 0.0) for x, y in corners])
    return points, np.array(faces)


def visible_way_m(corners, blocked, start, goal):
    """Return the shortest way by the visibility graph of the corners of axis-aligned blocks."""
    points = np.array([start, goal, *corners])
    count = len(points)
    lengths = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            line = points[i] + np.linspace(0, 1, 4001)[:, None] * (points[j] - points[i])
            inside = [
                ((line > np.add(low, 1e-9)) & (line < np.subtract(high, 1e-9))).all(axis=1).any()
                for low, high in blocked
            ]
            if not any(inside):
                lengths[i, j] = math.dist(points[i], points[j])
    return dijkstra(coo_array(lengths).tocsr(), directed=False, indices=0)[1]


def test_ways_on_small_triangles_are_those_of_a_visibility_graph_but_for_two_percent():
    free = np.ones((40, 30), bool)
    blocked = [((1.0, 0.5), (1.4, 3.0)), ((2.2, 0.0), (2.6, 2.1))]
    for low, high in blocked:
        x, y = (slice(*(round(10 * v) for v in pair)) for pair in zip(low, high, strict=True))
        free[x, y] = False
    navigation = TriangleNavigation(*grid_mesh(free, 0.1))
    # The other corners are on the border.
    corners = [(1.0, 0.5), (1.4, 0.5), (2.2, 2.1), (2.6, 2.1)]
    rng = np.random.default_rng(0)
    for _ in range(6):
        start, goal = rng.uniform((0.1, 0.1), (0.9, 2.9)), rng.uniform((2.7, 0.1), (3.9, 2.9))
        true_m = visible_way_m(corners, blocked, start, goal)
        found_m = navigation.distance_m((*start, 0), (*goal, 0))
        assert true_m - 1e-6 <= found_m <= 1.02 * true_m


def test_there_is_no_way_between_parts_that_do_not_touch(folder):
    apart, triangles = parse_navmesh((folder.path / 'misc/navmesh.txt').read_text(), 'n')
    apart[7:] += (1.0, 0, 0)
    navigation = TriangleNavigation(apart, np.delete(triangles, [3, 4], axis=0))
    assert navigation.distance_m((1, 1, 0), (8, 1, 0)) == math.inf
