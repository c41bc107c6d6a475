import io
import json

import pytest
from PIL import Image
from support.world.scenes import write_space3d_folder

from osmabench_ros.errors import OsmabenchError, QuestionError
from osmabench_ros.suites.space3d.scoring import ReferenceAnswer, SceneFolder, ShownAnswer


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


def test_objects_are_in_rooms_or_listed_after_them(folder):
    known = {number: item.class_name for number, item in folder.detections.items()}
    assert known[7] == 'bed'
    folder = SceneFolder(folder.path)
    file = folder.path / 'misc/detections.json'
    rooms = json.loads(file.read_text())
    objects = {'9': {'class_name': 'tree', 'center': [20, 0, 0], 'sizes': [1, 1, 1]}}
    for room in rooms.values():
        objects.update(room.pop('objects'))
    file.write_text(json.dumps({**rooms, 'objects': objects}))
    found = {number: item.class_name for number, item in folder.detections.items()}
    assert found == {**known, 9: 'tree'}


def replaced(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(('file', 'old', 'new', 'fault'), [
    ('questions.json', '"How many', '3, "x": "', r'questions\.json'),
    ('ground_truth.json', '"3": {', '"8": {', 'question 3 of questions.json is missing'),
    ('ground_truth.json', '"prompt"', '"promt"', 'promt'),
    ('misc/detections.json', '"class_name": "bed"', '"class_name": ""', 'class_name'),
    ('misc/detections.json', '"7"', '"seven"', r'objects\.seven.*pattern'),
    ('misc/detections.json', '"7"', '"4"', 'object 4 is there twice'),
    ('misc/detections.json', '1.4,', '-1.4,', r'objects\.7\.sizes'),
])  # fmt: skip
def test_what_is_malformed_is_named(folder, file, old, new, fault):
    replaced(folder.path / file, old, new)
    with pytest.raises(QuestionError, match=fault):
        _ = (folder.questions, folder.references, folder.detections)


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
