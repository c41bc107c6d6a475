"""The suite: questions with answers of the changed scene, and its figures for maps that err."""

from dataclasses import replace

import pytest
from support.world.runs import small_config
from support.world.scenes import furnished_room, truth_of_room

from osmabench_ros.base.progress import silent
from osmabench_ros.runs.config import MatrixConfig, SceneConfig
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.scenes.changes import apply_changes
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.semantics.scene_graph import NodeKind, ScoredLabel
from osmabench_ros.suites.hypo3d.generation import (
    Hypo3DRun,
    chosen_hypotheses,
    hypothetical_questions,
)
from osmabench_ros.suites.suite import SuiteContext, make_suite
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.question_files import read_records, write_records
from osmabench_ros.vqa.questions import Question

SEED = 1


@pytest.fixture(scope='module')
def generated():
    return hypothetical_questions(
        furnished_room(), truth_of_room(), scene_key='room', seed=SEED, count=5
    )


def of(questions, run):
    return [item for item in questions if item.provenance['run'] == run.value]


def perfect_map():
    truth = truth_of_room()
    return ground_truth_map(truth.graph, truth.seen_instances, truth.label_set)


def figures(semantic_map, questions, **options):
    context = SuiteContext('room', semantic_map, truth_of_room(), questions=questions)
    found = make_suite('hypo3d', options).evaluate(context)
    keys = [item.key for item in found]
    assert len(set(keys)) == len(keys)
    return {(item.metric, item.class_name): item for item in found if item.applicable}


def test_changes_of_all_types_are_chosen_and_the_same_for_a_seed(generated):
    truth = truth_of_room()
    given = furnished_room(), truth.graph, truth.seen_instances
    first, again = (chosen_hypotheses(*given, SEED, 5) for _ in range(2))
    assert [item.described for item in first] == [item.described for item in again]
    assert len({item.described.type for item in first}) == 5
    assert [item.change for item in first] == generated[1]
    assert len(chosen_hypotheses(*given, SEED, 2)) == 2
    # Nothing that no camera saw is changed or named.
    hidden = [key for key in truth.seen_instances if truth.graph.by_id[key].label != 'stool']
    told = chosen_hypotheses(*given[:2], hidden, SEED, 5)
    named = {name for x in told for name in (x.described.thing, x.described.other)}
    assert 'stool' not in named


def test_answers_after_a_described_change_are_those_of_the_changed_meshes(generated):
    """A second computation, from the meshes of the scene after the change, without the graph."""
    questions, changes = generated
    counted = 0
    for change in changes:
        scene = apply_changes(furnished_room(), (change,))
        names = [scene.class_name(item) for item in scene.objects]
        assert build_ground_truth_graph(scene).by_id.keys() == scene.by_instance.keys()
        for item in of(questions, Hypo3DRun.TOLD):
            if item.provenance['changed_scene'] != scene.name:
                continue
            if item.text.startswith('How many'):
                label = item.text.removeprefix('How many ').split(' are ')[0]
                singular = (
                    label.removesuffix('s').removesuffix('e') if 'x' in label else label[:-1]
                )
                assert item.answer == names.count(singular), item.text
                counted += 1
    assert counted >= 3


def test_all_kinds_and_runs_are_asked_and_some_answers_change(generated):
    questions, _ = generated
    told = of(questions, Hypo3DRun.TOLD)
    assert {item.category for item in told} == {'Scale', 'Direction', 'Semantic'}
    assert sum(item.provenance['affected'] == 'yes' for item in told) >= 5
    assert all(item.context_change for item in told)
    plain = of(questions, Hypo3DRun.UNCHANGED)
    assert plain
    assert not any(item.context_change for item in plain)
    answers = {item.provenance['item']: item.answer for item in plain}
    irrelevant = of(questions, Hypo3DRun.IRRELEVANT)
    assert irrelevant
    # What is told there has nothing to do with the answer.
    assert all(item.answer == answers[item.provenance['item']] for item in irrelevant)
    assert len({item.id for item in questions}) == len(questions)


def test_a_perfect_map_is_right_after_a_told_change_and_stale_without(generated):
    found = figures(perfect_map(), generated[0])
    for run in (Hypo3DRun.UNCHANGED, Hypo3DRun.TOLD, Hypo3DRun.IRRELEVANT):
        assert found[f'accuracy_{run.value}', ''].value == 1.0
    assert found['accuracy_told', 'movement'].n >= 6
    assert found['accuracy_told', 'Direction'].value == 1.0
    assert found['hallucination_rate', ''].value == 0.0
    assert found['staleness', ''].value == 1.0
    assert found['ceiling_ground_truth', ''].value == 1.0
    assert found['baseline_most_frequent', ''].value < 0.7
    assert found['baseline_random_labels', ''].value < 0.7


def test_wrong_names_in_a_map_cost_accuracy(generated):
    semantic_map = perfect_map()
    wrong = {'stool': 'box', 'box': 'stool', 'plant': 'lamp', 'lamp': 'plant'}

    def named(node):
        label = wrong.get(node.label, node.label)
        return replace(node, labels=(ScoredLabel(label, 1.0),)) if node.label else node

    graph = replace(semantic_map.graph, nodes=tuple(map(named, semantic_map.graph.nodes)))
    found = figures(replace(semantic_map, graph=graph), generated[0])
    assert found['accuracy_told', ''].value < 0.9
    assert found['accuracy_unchanged', ''].value < 0.9


def test_an_answer_that_an_irrelevant_change_flips_is_counted(generated):
    """In a map that takes the thing of one change for that of another, telling flips answers."""
    questions, _ = generated
    irrelevant = of(questions, Hypo3DRun.IRRELEVANT)[0]
    flipped = replace(irrelevant, context_change=of_item(questions, irrelevant).context_change)
    asked = [*of(questions, Hypo3DRun.UNCHANGED), flipped]
    found = figures(perfect_map(), asked)
    assert found['hallucination_rate', ''].value == 1.0
    assert found['hallucination_rate', ''].n == 1


def of_item(questions, item):
    """Return the told question of an item, whose change does change the answer."""
    return next(
        other
        for other in of(questions, Hypo3DRun.TOLD)
        if other.provenance['item'] == item.provenance['item']
    )


def test_a_map_without_things_has_no_figures(generated):
    semantic_map = perfect_map()
    nodes = tuple(n for n in semantic_map.graph.nodes if n.kind is NodeKind.ROOM)
    empty = replace(semantic_map, graph=replace(semantic_map.graph, nodes=nodes, edges=()))
    found = figures(empty, generated[0])
    assert ('accuracy_told', '') not in found
    assert figures(perfect_map(), []) == {}


def test_a_scene_that_was_mapped_again_is_asked_without_being_told(generated, tmp_path):
    questions, changes = generated
    file = tmp_path / 'questions.jsonl'
    write_records(file, questions)
    scene = apply_changes(furnished_room(), (changes[0],))
    graph = build_ground_truth_graph(scene)
    truth = replace(truth_of_room(), scene=scene.name, graph=graph, visible_graph=None)
    told = [
        q for q in of(questions, Hypo3DRun.TOLD) if q.provenance['changed_scene'] == scene.name
    ]
    assert told
    new, old = ground_truth_map(graph, graph.by_id, truth.label_set), perfect_map()
    values = []
    for semantic_map in (new, old):
        context = SuiteContext(scene.name, semantic_map, truth)
        found = make_suite('hypo3d', {'before': str(file)}).evaluate(context)
        figure = next(f for f in found if (f.metric, f.class_name) == ('accuracy_remapped', ''))
        assert figure.n == len(told)
        values.append(figure.value)
    assert values[0] == 1.0 > values[1]


@pytest.mark.full
@pytest.mark.gl
def test_a_run_with_the_suite_prepares_questions_and_changes_that_load(tmp_path):
    config = small_config(
        suites=[{'name': 'hypo3d'}],
        camera={'width': 320, 'height': 240},
        trajectory={'goals': 4, 'frame_rate_hz': 1, 'max_frames': 40},
    )
    preparation = Preparation(lambda _item: furnished_room())
    plan = preparation.plans(MatrixConfig.model_validate(config), tmp_path)[0]
    folder = preparation.prepare(plan, silent)
    questions = read_records(folder / 'questions.jsonl', Question)
    told = of([q for q in questions if q.suite == 'hypo3d'], Hypo3DRun.TOLD)
    assert told
    assert {q.suite for q in questions} == {'hypo3d', 'exact_questions'}
    files = sorted(folder.glob('hypo3d_change_*.yaml'))
    assert len(files) == 3
    scenes = {
        apply_changes(
            furnished_room(), SceneConfig.model_validate({'changes': str(file)}).changes
        ).name
        for file in files
    }
    assert {q.provenance['changed_scene'] for q in told} <= scenes
    other = {**config, 'suites': [{'name': 'map_geometry'}]}
    plan = preparation.plans(MatrixConfig.model_validate(other), tmp_path / 'other')[0]
    assert not list(preparation.prepare(plan, silent).glob('hypo3d*'))
