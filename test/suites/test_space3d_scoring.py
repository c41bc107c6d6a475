"""Scene folders, grades by rule, and verdicts of models as the published eval keeps them."""

import csv
import io
import json

import pytest
from PIL import Image
from support.commands import output_of
from support.loopback_models import LoopbackModels, Misstep, cached_client
from support.world.scenes import write_space3d_folder

from osmabench_ros.errors import (
    ConfigError,
    LanguageModelError,
    OsmabenchError,
    OsmabenchWarning,
    QuestionError,
)
from osmabench_ros.metrics.record import Mode
from osmabench_ros.suites.space3d import scoring
from osmabench_ros.suites.space3d.scoring import ReferenceAnswer, SceneFolder, ShownAnswer

KNOWN = {
    number: scoring.DetectedObject(class_name='chair', center=center, sizes=(1, 1, 1))
    for number, center in ((3, (1.0, 2.0, 0.5)), (12, (4.0, -1.25, 0.5)))
}
NAVIGABLE = 'What is the navigable distance between the sofa and the door?'
LACKING = 'Which rooms do not contain a bed?'
STRAIGHT = 'How far apart are the lamp and the sofa?'


@pytest.mark.parametrize(('question', 'right', 'said', 'correct'), [
    # Goldens of the published evaluation.
    (NAVIGABLE, '4.842 m', 'The navigable distance is 2.37 m.', False),
    (NAVIGABLE, '7.903 m', 'The navigable distance is 7.87 m.', True),
    ('How many chairs are there in the room?', 'Number of objects: 6', 'There are 5 chairs.',
     False),
    # Tolerances: 0.5 m walked, 0.2 m straight, 0.1 m a coordinate.
    (NAVIGABLE, 'Distance: 4 m', 'About 4.5 meters.', True),
    (NAVIGABLE, 'Distance: 4 m', 'About 4.51 meters.', False),
    (NAVIGABLE, 'Distance: 4 m', 'It is 420 cm.', True),
    (STRAIGHT, '2.5 m', 'They are 2.7 m apart.', True),
    (STRAIGHT, '2.5 m', 'They are 2.71 m apart.', False),
    (STRAIGHT, 'Distance: 2.5', 'The distance is 2.4.', True),
    (STRAIGHT, '2.5 m', 'Between 2.4 m and 9 m.', None),
    (STRAIGHT, '2.5 m', 'They are close.', None),
    ('Where is the sofa?', '[1.25, -0.5, 0.4]', 'Its centre is (1.35, -0.6, 0.4).', True),
    ('Where is the sofa?', '[1.25, -0.5, 0.4]', 'Its centre is (1.36, -0.5, 0.4).', False),
    ('Where is the sofa?', '[1.25, -0.5, 0.4]', 'At x = 1.2, y = -0.5, z = 0.4.', True),
    ('Where is the chair?', '[1.05, 2, 0.5]', 'It is object id 3.', True),
    ('Where is the sofa?', '[1.25, -0.5, 0.4]', 'Beside the door.', None),
    # The objects of a distance, by id or by the centre of their detection.
    (STRAIGHT, 'Ids: 3, 12; distance: 2.5 m', 'The lamp (id 3) and sofa (id 12): 2.6 m.', True),
    (STRAIGHT, 'Ids: 3, 12; distance: 2.5 m', 'Ids 3 and 13 are 2.6 m apart.', False),
    (STRAIGHT, 'Ids: 3, 12; distance: 2.5 m',
     'From (1.0, 2.05, 0.5) to (4.0, -1.3, 0.5) it is 2.6 m.', True),
    (STRAIGHT, 'Ids: 3, 12; distance: 2.5 m',
     'From (1.0, 2.05, 0.5) to (5.0, -1.3, 0.5) it is 2.6 m.', False),
    (STRAIGHT, 'Ids: 3, 12; distance: 2.5 m', 'They are 2.6 m apart.', None),
    # Numbers, ids, yes and no, things.
    ('How many chairs are there?', '6', 'There are six chairs, ids 1, 2, 3, 4, 5 and 6.', True),
    ('How many chairs are there?', '0', 'There are no chairs.', True),
    ('How many chairs are there?', '2', 'There are several.', False),
    ('How many chairs are there?', '2', '2 red ones and 3 blue ones', None),
    ('Which chairs are red?', 'Ids: 4, 7', 'The chairs with ids 7 and 4.', True),
    ('Which chairs are red?', 'Ids: 4, 7', 'Ids 4, 7 and 9.', False),
    ('Which chairs are red?', 'Ids: 4, 7', 'The two at the table.', None),
    ('Is there a bed?', 'Yes', 'There is a bed in the corner.', True),
    ('Is there a bed?', 'Yes', 'There is no bed.', False),
    ('Is there a bed?', 'Yes', 'Maybe.', None),
    ('Which room is largest?', 'Room: living room', 'The living room is the largest.', True),
    ('Which room is largest?', 'Room: living room', 'kitchen', False),
    ('What is there?', 'sofa, chair, table', 'There are a sofa, a chair and a table.', True),
    ('What is there?', 'sofa, chair, table', 'There are a sofa and a chair.', False),
    ('What is there?', 'sofa, chair', 'sofa, chair, bed', False),
    ('What is there?', 'sofa', 'sofa, chair, bed', False),
    ('How are they placed?', 'The sofa is opposite the armchair.', 'They face.', None),
    ('How many chairs are there?', '6', 'I cannot tell.', False),
    # Rooms that lack something, and a later sentence about another room.
    (LACKING, 'Kitchen, study do not contain a bed.', 'Kitchen, study do not have a bed.', True),
    (LACKING, 'Kitchen, study do not contain a bed.', 'Kitchen and study', True),
    (LACKING, 'Kitchen, study do not contain a bed.', 'Kitchen and bedroom', False),
    ('Which room is cosy?', 'Room: study', 'The study. The hall does not provide a seat.', True),
])  # fmt: skip
def test_sentences_are_graded_by_rule_or_left_open(question, right, said, correct):
    grade = scoring.SentenceGrader(KNOWN).grade(question, right, said)
    assert (None if grade is None else grade.correct) is correct


def test_the_tolerance_for_ways_is_also_chosen_by_the_criterion():
    grader = scoring.SentenceGrader()
    assert not grader.grade('How far is the bed?', '3 m', '3.4 m').correct
    assert grader.grade('How far is the bed?', '3 m', '3.4 m', 'Of navigable ones .5').correct


@pytest.mark.parametrize(('reply', 'expected'), [
    ('{"result": "1", "justification": "ok"}', {'result': '1', 'justification': 'ok'}),
    ('So: {"result": "0"} as I said', {'result': '0'}),
    ('first line\n{"result": "0"}\n{"result": "1"}', {'result': '0'}),
    ('{\n"result": "1"\n}', {'error': '{\n"result": "1"\n}'}),
    ("{'result': '1'}", {'error': "{'result': '1'}"}),
    ('{"result": "1"} or {"result": "0"}', {'error': '{"result": "1"} or {"result": "0"}'}),
    ('correct', {'error': 'correct'}),
])  # fmt: skip
def test_replies_are_read_with_the_quirks_of_the_published_code(reply, expected):
    assert scoring.read_as_published(reply) == expected


def accept(prompt):
    return json.dumps({'result': '0' if '5 chairs' in prompt else '1', 'justification': 'seen'})


def score(*arguments):
    return next(csv.DictReader(io.StringIO(output_of('score', 'space3d', *arguments))))


@pytest.fixture
def folder(tmp_path):
    return write_space3d_folder(tmp_path / 'two_rooms')


@pytest.fixture
def models(monkeypatch):
    monkeypatch.delenv('OPENAI_API_KEY', raising=False)
    monkeypatch.setenv('GEMINI_API_KEY', 'sk-secret')
    with LoopbackModels(reply=accept) as server:
        yield server


def compat(folder, server, tmp_path, kind='openai'):
    return score(
        folder, '--mode', 'compat', '--judge', f'{kind}:text', '--vision-judge', f'{kind}:eyes',
        '--base-url', server.url, '--cache', tmp_path / 'cache', '--out', tmp_path / 'out',
    )  # fmt: skip


@pytest.mark.parametrize('kind', ['openai', 'gemini'])
def test_in_compat_models_judge_all_and_see_the_image(kind, models, folder, tmp_path):
    row = compat(folder, models, tmp_path, kind)
    assert (row['right'], row['questions'], row['by_judge']) == ('2', '3', '3')
    assert float(row['accuracy']) == pytest.approx(2 / 3)
    kept = json.loads((tmp_path / 'out/two_rooms/result.json').read_text())
    assert list(kept['1']) == ['result', 'justification', 'question', 'answer', 'context']
    assert kept['1']['result'] == '0'
    assert kept['1']['context'] == 'Number of objects: 6'
    assert kept['2']['context'] == 'They face each other.'
    bodies = [json.dumps(item.body) for item in models.received]
    assert ['image/png' in body for body in bodies] == [False, True, False]
    assert 'Ground truth answer: 7.903 m' in models.received[2].prompt
    assert 'Example answer: They face each other.' in models.received[1].prompt


def test_an_interrupted_compat_run_goes_on_and_asks_nothing_twice(models, folder, tmp_path):
    models.missteps.extend([Misstep('status', 403)])
    with pytest.raises(LanguageModelError, match='HTTP status 403'):
        compat(folder, models, tmp_path)
    compat(folder, models, tmp_path)
    file = tmp_path / 'out/two_rooms/result.json'
    kept = json.loads(file.read_text())
    kept['1']['result'] = '1'
    del kept['3']
    file.write_text(json.dumps(kept))
    asked = len(models.received)
    row = compat(folder, models, tmp_path)
    assert row['right'] == '3', 'what is kept counts as it is'
    assert len(models.received) == asked, 'the third comes from the cache'


def test_a_kept_verdict_is_of_its_question_and_answer_only(models, folder, tmp_path):
    compat(folder, models, tmp_path)
    file = tmp_path / 'out/two_rooms/result.json'
    kept = json.loads(file.read_text())
    right = sum(item['result'] == '1' for item in kept.values())
    stale = {n: {**item, 'result': '1', 'answer': 'another'} for n, item in kept.items()}
    file.write_text(json.dumps(stale))
    assert int(compat(folder, models, tmp_path)['right']) == right < len(kept)


def test_an_empty_reply_of_a_judge_is_an_error_and_the_rest_is_judged(models, folder, tmp_path):
    models.reply = lambda prompt: '' if '7.903' in prompt else accept(prompt)
    client = cached_client(models, tmp_path)
    grading = scoring.Grading(Mode.COMPAT, tmp_path / 'out', client, client)
    with pytest.warns(OsmabenchWarning, match='sent an empty reply'):
        (found,) = grading.published().score_files([folder])
    assert (found['errors'], found['right'], found['questions']) == (1, 1, 3)
    kept = json.loads((tmp_path / 'out/two_rooms/result.json').read_text())
    assert kept['3']['error'] == ''


def test_what_is_not_answered_is_wrong_and_what_is_no_json_is_an_error(models, tmp_path):
    folder = write_space3d_folder(tmp_path / 'two_rooms', {'1': 'Six.', '3': '8 m'})
    models.reply = lambda prompt: '{"result":\n "1"}' if 'Six' in prompt else accept(prompt)
    row = compat(folder, models, tmp_path)
    assert (row['right'], row['unanswered'], row['errors']) == ('1', '1', '1')
    kept = json.loads((tmp_path / 'out/two_rooms/result.json').read_text())
    assert kept['2'] == {'result': '0', 'justification': 'No answer available.'}
    assert kept['1']['error'] == '{"result":\n "1"}'


def test_strict_grades_by_rule_first_and_counts_judged_answers_apart(models, folder, tmp_path):
    alone = score(folder, '--out', tmp_path / 'alone')
    assert (alone['right'], alone['by_rule'], alone['undecided']) == ('1', '2', '1')
    # What no rule decides is wrong, so that vague answers do not leave the denominator.
    assert (float(alone['accuracy']), alone['accuracy_decided']) == (pytest.approx(1 / 3), '0.5')
    assert not models.received
    row = score(
        folder, '--vision-judge', 'openai:eyes', '--base-url', models.url, '--cache',
        tmp_path / 'cache', '--out', tmp_path / 'out',
    )  # fmt: skip
    assert (row['right'], row['by_rule'], row['by_judge']) == ('2', '2', '1')
    assert len(models.received) == 1
    kept = json.loads((tmp_path / 'out/two_rooms/strict.json').read_text())
    assert [kept[number]['by'] for number in '123'] == ['rule', 'openai/eyes', 'rule']


def test_compat_without_a_judge_and_answers_of_another_scene_are_refused(folder, tmp_path):
    with pytest.raises(ConfigError, match='--judge'):
        score(folder, '--mode', 'compat', '--out', tmp_path / 'out')
    with pytest.raises(ConfigError, match='one scene folder'):
        score(folder, folder, '--answers', folder / 'answers.json', '--out', tmp_path / 'out')
    with pytest.raises(ConfigError, match='one name'):
        score(folder, folder, '--out', tmp_path / 'out')
    (folder / 'answers.json').write_text('{"9": "x"}')
    with pytest.raises(QuestionError, match='answer 9 has no question'):
        score(folder, '--out', tmp_path / 'out')


@pytest.fixture
def scene_folder(tmp_path):
    return SceneFolder(write_space3d_folder(tmp_path / 'two_rooms'))


def test_a_folder_reads_back_as_it_was_written(scene_folder):
    assert scene_folder.scene == 'two_rooms'
    assert scene_folder.questions['1'] == 'How many chairs are there in the room?'
    assert scene_folder.answers()['1'] == 'There are 5 chairs.'
    image = ShownAnswer(
        image_path='data/two_rooms/img/q2.png', example_answer='They face each other.'
    )
    assert scene_folder.references['2'] == ReferenceAnswer(
        answer=image, prompt='Decide by the image.'
    )
    assert scene_folder.references['3'].answer == '7.903 m'
    assert Image.open(io.BytesIO(scene_folder.image('2'))).getpixel((0, 0)) == (200, 30, 30)


def test_objects_are_in_rooms_or_listed_after_them(scene_folder):
    known = {number: item.class_name for number, item in scene_folder.detections.items()}
    assert known[7] == 'bed'
    scene_folder = SceneFolder(scene_folder.path)
    file = scene_folder.path / 'misc/detections.json'
    rooms = json.loads(file.read_text())
    objects = {'9': {'class_name': 'tree', 'center': [20, 0, 0], 'sizes': [1, 1, 1]}}
    for room in rooms.values():
        objects.update(room.pop('objects'))
    file.write_text(json.dumps({**rooms, 'objects': objects}))
    found = {number: item.class_name for number, item in scene_folder.detections.items()}
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
def test_what_is_malformed_is_named(scene_folder, file, old, new, fault):
    replaced(scene_folder.path / file, old, new)
    with pytest.raises(QuestionError, match=fault):
        _ = (scene_folder.questions, scene_folder.references, scene_folder.detections)


def test_missing_files_foreign_answers_and_broken_pictures_are_named(scene_folder, tmp_path):
    (tmp_path / 'other.json').write_text('{"17": "yes"}')
    with pytest.raises(QuestionError, match=r'other\.json: answer 17 has no question'):
        scene_folder.answers(tmp_path / 'other.json')
    (scene_folder.path / 'img/q2.png').write_bytes(b'no picture')
    with pytest.raises(QuestionError, match=r'q2\.png is not an image'):
        scene_folder.image('2')
    (scene_folder.path / 'img/q2.png').unlink()
    with pytest.raises(QuestionError, match=r'q2\.png'):
        scene_folder.image('2')
    with pytest.raises(QuestionError, match='question 1 has no image'):
        scene_folder.image('1')
    (scene_folder.path / 'answers.json').unlink()
    with pytest.raises(OsmabenchError, match=r'answers\.json'):
        scene_folder.answers()
