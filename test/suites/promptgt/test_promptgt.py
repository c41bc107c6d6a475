"""Scenes from a specification, questions from it, and scenes that lack what it says."""

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.commands import output_of
from support.world.graphs import ground_truth_of

from osmabench_ros.base.configuration import config_path, described_names
from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.changes import Remove, apply_changes
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.specification import FactKind, facts, read_specification
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.sequences.ground_truth import read_ground_truth, write_ground_truth
from osmabench_ros.suites import promptgt
from osmabench_ros.suites.suite import SuiteContext, make_suite
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.exact.prompt_ground_truth import promptgt_questions

OFFICE = config_path('specifications', 'office.yaml')
FLAT = {
    'name': 'flat',
    'rooms': [
        {
            'room': 'kitchen',
            'objects': [
                {'class': 'table'}, {'class': 'chair', 'count': 4}, {'class': 'refrigerator'},
                {'class': 'cup', 'count': 2, 'color': 'red', 'name': 'red cups'},
                {'class': 'cup', 'color': 'blue', 'name': 'blue cup'},
            ],
            'relations': [
                {'subject': 'chair', 'relation': 'around', 'object': 'table'},
                {'subject': 'red cups', 'relation': 'on', 'object': 'table'},
                {'subject': 'blue cup', 'relation': 'on', 'object': 'refrigerator'},
            ],
        },
        {
            'room': 'living room',
            'objects': [
                {'class': 'sofa'}, {'class': 'tv stand'}, {'class': 'coffee table'},
                {'class': 'chair'}, {'class': 'armchair', 'material': 'leather'},
            ],
            'relations': [
                {'subject': 'sofa', 'relation': 'against the wall'},
                {'subject': 'coffee table', 'relation': 'between', 'object': ['sofa', 'tv stand']},
            ],
        },
    ],
}  # fmt: skip


def written(folder, data, **more):
    path = folder / 'wanted.yaml'
    path.write_text(yaml.safe_dump({**data, **more}))
    return str(path)


@cache
def office():
    return load_scene(str(OFFICE), seed=1)


@cache
def truth_of(gone=''):
    """Return the ground truth of the office, as if everything was seen."""
    scene = office()
    if gone:
        scene = apply_changes(scene, (Remove(kind='remove', object=gone),))
    graph = build_ground_truth_graph(scene)
    cloud = LabelledCloud(np.zeros((1, 3), np.float32), np.zeros(1, int), np.zeros(1, int))
    return ground_truth_of(
        graph, cloud, dataset=scene.dataset, scene=scene.name, label_set=scene.label_set,
        seen_instances=tuple(scene.by_instance), specification=scene.specification,
    )  # fmt: skip


def figures(truth, without=(), **options):
    given = ground_truth_map(truth.graph, truth.seen_instances, truth.label_set)
    nodes = tuple(node for node in given.graph.nodes if node.source_id not in without)
    ids = {node.id for node in nodes}
    edges = tuple(e for e in given.graph.edges if {e.source, e.target} <= ids)
    given = replace(given, graph=replace(given.graph, nodes=nodes, edges=edges))
    found = make_suite('promptgt', options).evaluate(SuiteContext('office', given, truth, seed=1))
    return {(item.metric, item.mode, item.class_name): item for item in found}


def test_the_apartment_holds_what_is_specified_counted_again_from_the_meshes(tmp_path):
    scene = load_scene(written(tmp_path, FLAT), seed=2)
    assert scene.name == 'flat_seed_2'
    names = [scene.class_name(item) for item in scene.objects]
    assert [names.count(name) for name in ('chair', 'cup', 'sofa', 'bed')] == [5, 3, 1, 0]
    rooms = {room.id: room.name for room in scene.rooms}
    of = {name: [i for i in scene.objects if scene.class_name(i) == name] for name in set(names)}
    assert sorted(rooms[item.room_id] for item in of['chair']) == ['kitchen'] * 4 + ['living room']
    assert sorted(item.attributes['color'] for item in of['cup']) == ['blue', 'red', 'red']
    top = of['table'][0].box.maximum[2]
    red = [item for item in of['cup'] if item.attributes['color'] == 'red']
    assert all(abs(item.box.minimum[2] - top) < 0.01 for item in red)
    assert of['armchair'][0].attributes['material'] == 'leather'
    again = load_scene(written(tmp_path, FLAT), seed=2)
    assert again.source_sha256 == scene.source_sha256
    assert all(fact.holds for fact in facts(scene.specification, build_ground_truth_graph(scene)))


@pytest.mark.parametrize(
    ('rooms', 'sentence'),
    [
        ([{'room': 'attic', 'objects': [{'class': 'bed', 'count': 30}]}],
         'cannot hold that the number of "bed" in the attic is 30'),
        ([{'room': 'attic', 'objects': [{'class': 'desk'}, {'class': 'sofa'}],
           'relations': [{'subject': 'sofa', 'relation': 'on', 'object': 'desk'}]}],
         'cannot hold that every sofa is on the desk'),
        ([{'room': 'attic', 'objects': [{'class': 'dragon'}]}],
         'the attic cannot have "dragon", which the apartment does not know'),
        ([{'room': 'attic', 'objects': [{'class': 'bed', 'color': 'plaid'}]}],
         'cannot hold that every bed is plaid'),
        ([{'room': 'attic', 'objects': [{'class': 'bed', 'material': 'paper'}]}],
         'cannot hold that every bed is paper'),
        ([{'room': 'attic', 'objects': [{'class': 'bed'}],
           'relations': [{'subject': 'cup', 'relation': 'on', 'object': 'bed'}]}],
         'no object is called "cup"'),
        ([{'room': 'attic', 'objects': [{'class': 'bed'}],
           'relations': [{'subject': 'bed', 'relation': 'between', 'object': 'bed'}]}],
         '"between" takes 2 "object"'),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_sentence(rooms, sentence, tmp_path):
    with pytest.raises(SceneError, match=sentence):
        load_scene(written(tmp_path, {'name': 'attic', 'rooms': rooms}))


def test_answers_follow_from_the_specification_alone():
    wanted = read_specification(OFFICE)
    questions = promptgt_questions(wanted, scene='office', seed=3)
    assert 8 <= len(questions) <= 14
    by_category = {item.category for item in questions}
    assert by_category == {'PromptGT-Measurement', 'PromptGT-Relations', 'PromptGT-Existence'}
    known = {'desk': 1, 'chair': 2, 'book': 3, 'box': 1, 'plant': 1, 'laptop': 1, 'bowl': 1}
    counted = 0
    for item in questions:
        if item.category == 'PromptGT-Measurement':
            noun = next((n for n in known if n in item.text and 'bookshel' not in item.text), None)
            counted += noun is not None
            assert noun is None or item.answer == known[noun], item.text
        if 'laptop' in item.text and 'under the desk' in item.text:
            assert item.answer == 'no'
    assert counted
    assert questions == promptgt_questions(wanted, scene='office', seed=3)


@pytest.mark.parametrize('name', described_names('specifications'))
def test_questions_keep_the_rules_of_upstream(name):
    """At least 3 counts and 3 relations and 1 to 4 about what there is, 8 to 14 in all."""
    wanted = load_scene(name, seed=2).specification
    assert all(str(group.count) in wanted.prompt for group in wanted.rooms[0].objects)
    questions = promptgt_questions(wanted, scene=name, seed=2)
    asked = Counter(item.category for item in questions)
    assert 8 <= len(questions) <= 14
    assert min(asked['PromptGT-Measurement'], asked['PromptGT-Relations']) >= 3
    assert 1 <= asked['PromptGT-Existence'] <= 4
    for item in questions:
        words = set(item.text.lower().strip('?').split())
        assert not words & {'left', 'right', 'front', 'behind'}, 'these depend on the viewpoint'
        assert len(str(item.answer).split()) <= 3
        if item.category == 'PromptGT-Existence':
            assert item.answer == 'yes'
        if item.category == 'PromptGT-Measurement':
            assert str(item.answer).isdigit()


def test_fidelity_of_the_scene_is_apart_from_the_quality_of_the_map():
    whole = figures(truth_of())
    assert whole['fidelity', '', ''].value == 1
    assert whole['accuracy', '', ''].value == 1
    assert whole['accuracy_faithful', 'strict', ''].n == whole['accuracy', '', ''].n
    # The scene lacks a chair: the map of it is right, and the prompt is not met.
    lacking = figures(truth_of('chair_01'))
    assert lacking['fidelity', '', ''].value < 1
    assert lacking['fidelity', '', FactKind.COUNT.value].value == pytest.approx(8 / 9)
    assert lacking['accuracy_faithful', 'strict', ''].value == 1
    # The map lacks it, and the scene has it.
    blind = figures(truth_of(), without=('chair_01',))
    assert blind['fidelity', '', ''].value == 1
    assert blind['accuracy_faithful', 'strict', ''].value == blind['accuracy', '', ''].value < 1
    assert blind['accuracy_block', 'compat', 'Measurements'].value < 1


def test_a_scene_without_specification_has_no_figures():
    found = figures(replace(truth_of(), specification=None))
    assert not any(item.applicable for item in found.values())


def test_ground_truth_keeps_the_specification(tmp_path):
    write_ground_truth(truth_of(), tmp_path / 'truth')
    assert read_ground_truth(tmp_path / 'truth').specification == office().specification
    write_ground_truth(replace(truth_of(), specification=None), tmp_path / 'plain')
    assert 'specification' not in (tmp_path / 'plain' / 'ground_truth.json').read_text()


def test_question_files_are_read_and_asked(tmp_path):
    questions = promptgt_questions(office().specification, scene='s', seed=1)
    file = tmp_path / f'{office().name}_questions.json'
    promptgt.write_questions(file, 'furniture_stage__scene_000', questions)
    data = json.loads(file.read_text())
    assert data['parameters'][0]['frame'] == 'prompt_ground_truth'
    assert {q['answer'] for q in data['parameters'][0]['qa']} >= {'Yes', '1'}
    assert [q.text for q in promptgt.read_questions(file)] == [q.text for q in questions]
    asked = figures(truth_of(), questions=str(tmp_path))
    assert (asked['accuracy', '', ''].value, asked['accuracy', '', ''].n) == (1, len(questions))


def answered(root, place, rows):
    file = root / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(rows))


@pytest.mark.parametrize('key', [
    'similar', 'is_correct', 'correct', 'match', 'prompt_gt_similar', 'promptgt_similar',
    'prompt_gt_correct', 'promptgt_correct',
])  # fmt: skip
def test_every_verdict_key_and_word_of_upstream_counts(key, tmp_path):
    said = ['yes', True, 1, 'Correct', 'similar', 'no', False, 0]
    rows = [{'category': 'PromptGT-Relations', key: value} for value in said]
    answered(tmp_path, 'BBQ/x_answered.json', [*rows, {'category': 'PromptGT-Relations'}])
    (row,) = promptgt.compare_sources().score(promptgt.read_verdicts(tmp_path, promptgt.PROMPT))
    assert (row['correct'], row['wrong'], row['unknown'], row['total']) == (5, 3, 1, 9)


def test_blocks_are_aggregated_as_published_with_unknowns_in_the_denominator(tmp_path):
    standard, prompt = tmp_path / 'standard', tmp_path / 'prompt'
    answered(standard, 'CG/evaluated_camera_lights/furniture_stage__scene_000_answered.json', [
        {'category': 'Measurement', 'similar': 'Yes'},
        {'category': 'Measurement'},
        {'category': 'Object Relations - Functional', 'similar': 'no'},
        {'category': 'Object Relations - Spatial', 'similar': True},
        {'category': 'Binary General', 'similar': 'Yes'},
    ])  # fmt: skip
    answered(prompt, 'CG/evaluated_camera/furniture_stage__scene_000_answered.json', [
        {'category': 'PromptGT-Measurement', 'promptgt_correct': 1},
        {'category': 'PromptGT-Existence', 'match': 'correct'},
        {'category': 'PromptGT-Relations', 'prompt_gt_similar': 'maybe'},
        {'category': 'PromptGT-Relations', 'similar': None, 'correct': 'yes'},
    ])  # fmt: skip
    answered(prompt, 'CG/evaluated_camera/other_answered.json', {'no': 'list'})
    rows = promptgt.compare_sources(long=True).score_files([standard, prompt])
    names = ('category', 'total', 'correct', 'wrong', 'unknown', 'accuracy')
    assert [tuple(row[name] for name in names) for row in rows[:2]] == [
        ('Measurements', 2, 1, 0, 1, 0.5),
        ('Relations', 2, 1, 1, 0, 0.5),
    ]
    (row,) = promptgt.put_side_by_side(rows)
    assert (row['approach'], row['subset'], row['label']) == ('CG', 'furniture', 'camera')
    assert (row['PromptGT | Measurements'], row['PromptGT | Relations']) == (
        1,
        pytest.approx(1 / 3),
    )
    output = output_of('score', 'promptgt', standard, prompt, '--format', 'json')
    assert json.loads(output) == [row]
    assert promptgt.place_of(Path('/data/bbq_run/nominal/manipuland_stage__x.json')) == (
        'BBQ', 'manipuland', 'no_lights')  # fmt: skip
