"""Prompts, specifications and questions by a model over real HTTP, on both APIs."""

import json

import numpy as np
import pytest
import yaml
from support import scripted_model
from support.commands import output_of
from support.loopback_models import LoopbackModels
from support.scripted_model import DINING, ROOMS

from osmabench_ros.errors import LanguageModelError
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.vqa.scene_prompts import (
    farthest_first,
    faults_of_prompt,
    promptgt_by_model,
    regimes,
    specification_of,
    without_near_duplicates,
    write_prompts,
)

OFFICE = (
    'An office with 1 desk and 2 chairs. On the desk there is 1 laptop next to 3 books. 1 box is '
    'under the desk between its legs, and 1 chair stands in front of the desk.'
)
QUESTIONS = [
    ('PromptGT-Measurement', 'How many laptops are there?', '1 laptop'),
    ('PromptGT-Measurement', 'How many laptops are there? ', '1'),
    ('PromptGT-Relations', 'Is the laptop on the desk?', 'true'),
    ('Riddles', 'What has four legs?', 'desk'),
]


class Words:
    """Counts the words of texts."""

    name = 'words'

    def embed(self, texts):
        known = sorted({word for text in texts for word in text.split()})
        counts = np.array([[text.split().count(word) for word in known] for text in texts], float)
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def reply(prompt):
    if prompt.startswith(('Write 12 different descriptions', 'Description, as JSON')):
        return scripted_model.reply(prompt)
    keys = ('category', 'question', 'answer')
    rows = [{**dict(zip(keys, row, strict=True)), 'objects': []} for row in QUESTIONS]
    return json.dumps({'questions': rows})


@pytest.fixture
def server():
    with LoopbackModels(reply=reply) as models:
        yield models


def test_filters_reject_for_the_published_reasons():
    furniture, manipuland = (regimes()[name] for name in ('furniture', 'manipuland'))
    assert faults_of_prompt(DINING, furniture) == []
    assert faults_of_prompt(OFFICE, manipuland) == []
    assert 'contains_forbidden_objects' in faults_of_prompt(OFFICE, furniture)
    # Within words as upstream, by whole words strictly: a bookshelf holds a book.
    shelf = DINING.replace('sideboard', 'bookshelf')
    assert faults_of_prompt(shelf, furniture) == ['contains_forbidden_objects']
    assert faults_of_prompt(shelf, furniture, strict=True) == []
    assert faults_of_prompt('2 cups [here] #1.', furniture) == [
        'too_short', 'too_few_explicit_counts', 'too_few_spatial_cues', 'too_few_total_objects',
        'too_few_sentences', 'contains_ids', 'contains_structural_markup',
        'contains_forbidden_objects', 'too_simple', 'no_required_object_hits',
    ]  # fmt: skip
    assert 'too_many_total_objects' in faults_of_prompt(OFFICE.replace('3', '30'), manipuland)
    assert 'vague_words' in faults_of_prompt(OFFICE.replace('2 chairs', 'some chairs'), manipuland)


def test_rows_are_spread_and_near_ones_left_out():
    angles = np.radians([0, 10, 90, 45, 91])
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert without_near_duplicates(features) == [0, 2, 3]
    assert farthest_first(features, 3) == [0, 4, 3]
    assert farthest_first(features, 9)[:2] == [0, 4]
    assert farthest_first(features[:0], 3) == []


def test_prompts_are_written_filtered_deduplicated_and_kept(client, server):
    pool = write_prompts(client, 'furniture', Words(), wanted=2, raw=2, attempts=3)
    assert pool.kept == (DINING,)  # the one with sofas is 0.9 alike, the loud one the same
    reasons = dict(pool.rejected)
    assert 'too_short' in reasons['A room.']
    assert next(why for text, why in pool.rejected if 'Several' in text) == ('vague_words',)
    count = len(server.received)
    assert write_prompts(client, 'furniture', Words(), wanted=2, raw=2, attempts=3) == pool
    assert len(server.received) == count, 'the second time comes from the cache'
    server.reply = lambda prompt: json.dumps({'prompts': [{'prompt': 'No.'}]})
    with pytest.raises(LanguageModelError, match='none of 1 prompts by'):
        write_prompts(client, 'manipuland', Words(), raw=2, attempts=1)


def test_a_prompt_becomes_a_specification_and_questions(client, server):
    made = specification_of(client, OFFICE, 'office_1', ['desk', 'wardrobe'])
    assert (made.name, made.prompt) == ('office_1', OFFICE)
    assert [item.label for item in made.rooms[0].objects] == ['desk', 'laptop']
    asked = promptgt_by_model(client, OFFICE, 'office_1')
    assert [(item.text, item.answer) for item in asked] == [
        ('How many laptops are there?', '1'), ('Is the laptop on the desk?', 'Yes'),
    ]  # fmt: skip
    # A statement about what is not there is no specification.
    wrong = [{**ROOMS[0], 'objects': ROOMS[0]['objects'][:1]}]
    server.reply = lambda prompt: json.dumps({'rooms': wrong})
    with pytest.raises(LanguageModelError, match='no object is called "laptop"'):
        specification_of(client, 'Another office.', 'office_2', ['desk'])


def test_commands_lead_from_prompts_to_scenes_and_questions(server, tmp_path, monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', 'sk-secret')
    (tmp_path / 'prompts.json').write_text(json.dumps({'office_1': OFFICE}))
    model = ['--model', 'openai:m', '--base-url', server.url, '--cache', str(tmp_path / 'cache')]
    specs, exact, by_model = (str(tmp_path / name) for name in ('specs', 'exact', 'by_model'))
    for call in (
        ['specify', str(tmp_path / 'prompts.json'), '--out', specs, *model],
        ['questions', specs, '--out', exact],
        ['questions', specs, '--out', by_model, *model],
    ):
        assert 'sk-secret' not in output_of('scene', *call)
    file = tmp_path / 'specs' / 'office_1.yaml'
    assert yaml.safe_load(file.read_text())['prompt'] == OFFICE
    assert load_scene(str(file)).name == 'office_1_seed_0'
    for folder in (exact, by_model):
        data = json.loads((tmp_path / folder / 'office_1_questions.json').read_text())
        said = {q['category'] for q in data['parameters'][0]['qa']}
        assert said >= {'PromptGT-Measurement', 'PromptGT-Relations'}
