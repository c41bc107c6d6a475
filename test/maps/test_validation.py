import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from support.world.maps import sample_map

from osmabench_ros.base.configuration import config_path
from osmabench_ros.geometry.point_files import read_ply, write_ply
from osmabench_ros.maps.disk.document import json_schema
from osmabench_ros.maps.disk.storage import faults_of_directory, write_map

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_map(sample_map(), tmp_path / 'map')
    return tmp_path / 'map'


def change_document(directory: Path, change: Change) -> None:
    document = json.loads((directory / 'map.json').read_text())
    change(document)
    (directory / 'map.json').write_text(json.dumps(document))


def change_cloud(directory: Path, name: str, row: int, value: float) -> None:
    columns = read_ply(directory / 'cloud.ply')
    columns[name][row] = value
    with (directory / 'cloud.ply').open('wb') as stream:
        write_ply(stream, columns)


def only_fault(directory: Path) -> str:
    faults = faults_of_directory(directory)
    assert len(faults) == 1, faults
    return str(faults[0])


def test_a_sound_map_has_no_faults(directory: Path) -> None:
    assert faults_of_directory(directory) == []


def put(*path: Any) -> Change:
    """Return a change that puts the last argument at the path of the others."""

    def change(document: dict[str, Any]) -> None:
        at: Any = document
        for key in path[:-2]:
            at = at[key]
        at[path[-2]] = path[-1]

    return change


@pytest.mark.parametrize(
    ('change', 'place', 'message'),
    [
        (put('format', 'osmabench.semantic_map/2'), 'format', 'semantic_map/1'),
        (put('nodes', 1, 'id', 4), 'nodes[1].id', 'node id 4 is taken by nodes[0]'),
        (put('nodes', 1, 'id', 0), 'nodes[1].id', 'greater than or equal to 1'),
        (put('nodes', 1, 'parent', 5), 'nodes[1].parent', 'node 5 does not exist'),
        (put('nodes', 2, 'parent', 9), 'nodes[2].parent', 'its own ancestor'),
        (put('nodes', 0, 'colour', 1), 'nodes[0].colour', 'Extra inputs'),
        (put('nodes', 0, 'box', 'min', [2.0, 0, 0]), 'nodes[0].box', 'exceeds max'),
        (
            put('nodes', 0, 'oriented_box', 'rotation', 0, 0, 3.0),
            'nodes[0].oriented_box.rotation',
            'orthonormal',
        ),
        (put('nodes', 0, 'feature_row', 2), 'nodes[0].feature_row', '"clip" has 2 rows'),
        (put('nodes', 0, 'feature_space', ''), 'nodes[0].feature_row', 'no feature space'),
        (put('nodes', 0, 'labels', 0, 'class_id', 8), 'nodes[0].labels[0].class_id', '8'),
        (put('edges', 0, 'target', 5), 'edges[0].target', 'node 5 does not exist'),
        (put('label_set', 'classes', 1, 'id', 1), 'label_set.classes[1].id', 'taken by'),
        (put('dense', 'feature_space', 'dino'), 'dense.feature_space', '"dino"'),
        (put('header', 'provenance', 'source_sha256', 'x'), 'header.provenance', 'pattern'),
        (put('nodes', 0, 'labels', 0, 'score', float('nan')), '', 'the number NaN is not finite'),
    ],
)
def test_a_fault_of_the_document_is_named_with_its_place(
    directory: Path, change: Change, place: str, message: str
) -> None:
    change_document(directory, change)
    found = [str(fault) for fault in faults_of_directory(directory)]
    assert any(f'map.json: {place}' in fault and message in fault for fault in found), found


def test_all_faults_are_listed_not_just_the_first(directory: Path) -> None:
    change_document(directory, put('edges', 0, 'target', 5))
    change_document(directory, put('nodes', 0, 'feature_row', 5))
    change_cloud(directory, 'x', 3, np.nan)
    (directory / 'dense' / 'valid.npy').unlink()
    places = [(fault.file, fault.place) for fault in faults_of_directory(directory)]
    assert sorted(places) == [
        ('cloud.ply', 'x, row 3'),
        ('dense/valid.npy', ''),
        ('map.json', 'edges[0].target'),
        ('map.json', 'nodes[0].feature_row'),
    ]


@pytest.mark.parametrize(
    ('name', 'value', 'message'),
    [
        ('z', np.inf, 'cloud.ply: z, row 2: a coordinate is NaN or infinite'),
        ('label', 17, 'cloud.ply: label, row 2: 17: not among the label set'),
        ('instance', 5, 'cloud.ply: instance, row 2: 5: not among the nodes'),
        ('score', np.inf, 'cloud.ply: score, row 2: a score is infinite'),
    ],
)
def test_a_bad_point_is_named_with_its_row(
    directory: Path, name: str, value: float, message: str
) -> None:
    change_cloud(directory, name, 2, value)
    assert only_fault(directory) == message


@pytest.mark.parametrize(
    ('file', 'array', 'message'),
    [
        ('dense/feature_rows', np.array([0, 1, -1, 0, 2, -1], np.int32), 'row 4: 2 is out of'),
        ('dense/feature_rows', np.zeros(5, np.int32), 'int32 of shape (5,), not int32 of (6,)'),
        ('dense/valid', np.ones(6, np.uint8), 'uint8 of shape (6,), not bool'),
        ('dense/membership_node_ids', np.array([4, 5], np.int32), 'row 1: 5: not among the nodes'),
        ('dense/membership_node_ids', np.array([4, 4], np.int32), 'node 4 has row 0 already'),
        ('dense/membership_point_indices', np.array([0, 1, 2, 2, 6]), 'row 4: 6 is out of range'),
        ('dense/membership_offsets', np.array([0, 3, 4]), 'last row: must be 5'),
        ('dense/membership_offsets', np.array([0, 6, 5]), 'must not decrease'),
        ('dense/membership_offsets', np.array([0, 5]), 'needs 3 entries'),
        ('features/0', np.zeros((3, 5), np.float32), 'float32 of shape (3, 5), not float32'),
        ('features/0', np.ones((2, 5), np.float32), 'row 0, 1: not of unit length'),
        ('features/0', np.full((2, 5), np.nan, np.float32), 'row 0, 1: a feature is NaN'),
    ],
)
def test_a_bad_array_is_named(directory: Path, file: str, array: np.ndarray, message: str) -> None:
    np.save(directory / f'{file}.npy', array)
    assert f'{file}.npy: ' in only_fault(directory)
    assert message in only_fault(directory)


@pytest.mark.parametrize('name', ['dense/valid.npy', 'features/0.npy', 'cloud.ply', 'map.json'])
def test_a_missing_or_empty_file_is_named(directory: Path, name: str) -> None:
    (directory / name).write_bytes(b'')
    assert f'{name}: ' in only_fault(directory)
    (directory / name).unlink()
    assert 'does not exist' in only_fault(directory)


@pytest.mark.parametrize('text', ['{', '[]'])
def test_a_document_that_is_no_json_object_is_a_fault(directory: Path, text: str) -> None:
    (directory / 'map.json').write_text(text, 'latin-1')
    assert only_fault(directory).startswith('map.json: ')


def test_extras_that_are_no_object_are_a_fault(directory: Path) -> None:
    (directory / 'extras' / 'extras.json').write_text('[1]')
    assert only_fault(directory) == 'extras/extras.json: must hold an object, not a list'


def test_labels_without_a_label_set_are_a_fault(directory: Path) -> None:
    change_document(directory, put('label_set', None))
    found = [str(fault) for fault in faults_of_directory(directory)]
    assert 'cloud.ply: label: points have labels, but the map has no label set' in found


def test_the_schema_on_disk_is_the_one_of_the_code() -> None:
    path = config_path('schemas', 'semantic_map.schema.json')
    assert json.loads(path.read_text()) == json_schema()


def test_the_schema_takes_a_map_and_refuses_a_wrong_one(directory: Path) -> None:
    schema = json.loads(config_path('schemas', 'semantic_map.schema.json').read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads((directory / 'map.json').read_text())
    jsonschema.validate(document, schema)
    document['nodes'][0]['id'] = 'four'
    with pytest.raises(jsonschema.ValidationError, match='four'):
        jsonschema.validate(document, schema)
