"""One base of models, and one text about wrong data."""

import pytest
from pydantic import Field

from osmabench_ros.base.files import write_json
from osmabench_ros.base.strict import Strict, read_model, validated
from osmabench_ros.errors import ConfigError, RunError, SceneError


class Lens(Strict):
    focal_px: float = Field(gt=0)
    kind: str = Field('pinhole', alias='class')


class Camera(Strict):
    width: int
    lenses: tuple[Lens, ...] = ()
    notes: dict[str, str] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ('data', 'text'),
    [
        ([1], 'x.yaml: must be a mapping of keys to values (it is [1])'),
        ({}, 'x.yaml: width: Field required'),
        ({'widht': 3}, 'x.yaml: unknown key "widht". Did you mean "width"? Choose from: '),
        ({'width': True}, 'x.yaml: "width": true and false are neither numbers nor texts'),
        (
            {'width': 3, 'lenses': [{'focal_px': -1}]},
            'x.yaml: lenses.0.focal_px: Input should be greater than 0 (it is -1)',
        ),
        (
            {'width': 3, 'lenses': [{'focal_px': 1, 'clas': 'fish'}]},
            'x.yaml: lenses.0: unknown key "clas". Did you mean "class"? ',
        ),
        ({'width': 3, 'lenses': [7]}, 'x.yaml: lenses.0: must be a mapping of keys to values'),
        ({'width': 3, 'notes': 'n' * 999}, f"(it is '{'n' * 56}...)"),
    ],
)
def test_the_first_fault_is_named_with_its_place_and_value(data, text):
    with pytest.raises(SceneError) as caught:
        validated(Camera, data, 'x.yaml', SceneError)
    assert text in str(caught.value)


def test_data_without_fault_become_their_model_and_lists_too():
    camera = validated(Camera, {'width': 3, 'lenses': [{'focal_px': 2, 'class': 'fish'}]}, 'x')
    assert camera == Camera(
        width=3, lenses=(Lens.model_validate({'focal_px': 2, 'class': 'fish'}),)
    )
    assert validated(list[Camera], [{'width': 1}, camera], 'x') == [Camera(width=1), camera]
    with pytest.raises(ConfigError, match=r'^x: 1\.width: Field required; ask$'):
        validated(list[Camera], [{'width': 1}, {}], 'x', remedy='ask')


def test_a_file_of_a_run_that_is_no_model_says_how_to_go_on(tmp_path):
    write_json(tmp_path / 'c.json', {'width': 1.5})
    with pytest.raises(RunError, match=r'c\.json is malformed: width: .*1\.5.*; .* --fresh'):
        read_model(Camera, tmp_path / 'c.json')


def test_all_faults_are_named_at_once():
    lens = {'focal_px': -1, 'clas': 'fish'}
    with pytest.raises(ConfigError) as caught:
        validated(Camera, {'width': 'w', 'lenses': [lens], 'note': {}, 'colour': 1}, 'x.yaml')
    text = str(caught.value)
    for fault in (
        'unknown key "note". Did you mean "notes"?',
        'unknown key "colour". ',
        'width: Input should be a valid integer',
        'lenses.0: unknown key "clas". Did you mean "class"?',
        'focal_px: Input should be greater than 0 (it is -1)',
    ):
        assert text.count(fault) == 1, fault
    many = {'width': 1, 'lenses': [{'focal_px': -1}] * 30}
    with pytest.raises(ConfigError, match=r'lenses\.9\.focal_px: .*; and 20 more faults$'):
        validated(Camera, many, 'x')
