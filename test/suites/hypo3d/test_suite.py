"""The suite hypo3d: questions after a told, a remapped and a live change."""

from dataclasses import replace

import pytest
from support.figures import figures
from support.loopback_models import LoopbackModels
from support.world.runs import small_config
from support.world.scenes import furnished_room, truth_of_room

from osmabench_ros.base.files import write_json
from osmabench_ros.base.progress import silent
from osmabench_ros.metrics.over_time import ScoresAtTime
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.reports.matrix import with_changed_scenes
from osmabench_ros.runs import matrix_on_disk
from osmabench_ros.runs.config import MatrixConfig, SceneConfig
from osmabench_ros.runs.evaluation import OVER_TIME, ReportOverTime
from osmabench_ros.runs.matrix_on_disk import write_manifest
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.report_model import RunReport, Status, join_run
from osmabench_ros.runs.run_manifest import write_run_manifest
from osmabench_ros.runs.shared_path import PATH_FILE
from osmabench_ros.scenes.changes import apply_changes
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.semantics.scene_graph import NodeKind, ScoredLabel
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.suites.hypo3d.generation import (
    ChangeChooser,
    Hypo3DRun,
    hypothetical_questions,
)
from osmabench_ros.suites.hypo3d.suite import AFFECTED, imagination_gap, of_run
from osmabench_ros.suites.suite import SuiteContext, make_suite
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.kinds import QueryKind
from osmabench_ros.vqa.question_files import read_records, write_records
from osmabench_ros.vqa.questions import Answer, AnswerType, Question, Verdict
from osmabench_ros.vqa.wording import parsed

SEED = 1


@pytest.fixture(scope='module')
def generated():
    return hypothetical_questions(
        furnished_room(), truth_of_room(), scene_key='room', seed=SEED, count=5
    )


def perfect_map():
    truth = truth_of_room()
    return ground_truth_map(truth.graph, truth.seen_instances, truth.label_set)


def scored(semantic_map, questions):
    context = SuiteContext('room', semantic_map, truth_of_room(), questions=questions)
    return figures(make_suite('hypo3d'), context, 'metric', 'class_name', applicable=True)


def test_changes_of_all_types_are_chosen_and_the_same_for_a_seed(generated):
    truth = truth_of_room()

    def choose(count, **known):
        return ChangeChooser(furnished_room(), replace(truth, **known), SEED).list_hypotheses(
            count
        )

    first, again = (choose(5) for _ in range(2))
    assert [item.described for item in first] == [item.described for item in again]
    assert len({item.described.type for item in first}) == 5
    assert [item.change for item in first] == generated[1]
    assert len(choose(2)) == 2
    # Nothing that no camera saw is changed or named.
    seen = tuple(key for key in truth.seen_instances if truth.graph.by_id[key].label != 'stool')
    told = choose(5, seen_instances=seen)
    assert 'stool' not in {name for x in told for name in (x.described.thing, x.described.other)}


def test_answers_after_a_described_change_are_those_of_the_changed_meshes(generated):
    """A second computation, from the meshes of the scene after the change, without the graph."""
    questions, changes = generated
    counted = 0
    for change in changes:
        scene = apply_changes(furnished_room(), (change,))
        names = [scene.class_name(item) for item in scene.objects]
        assert build_ground_truth_graph(scene).by_id.keys() == scene.by_instance.keys()
        for item in of_run(questions, Hypo3DRun.TOLD):
            if item.provenance['changed_scene'] != scene.name:
                continue
            query = parsed(item.text)
            if query.kind is QueryKind.COUNT:
                assert item.answer == names.count(query.phrases[0]), item.text
                counted += 1
    assert counted >= 3


def test_all_kinds_and_runs_are_asked_and_some_answers_change(generated):
    questions, _ = generated
    told = of_run(questions, Hypo3DRun.TOLD)
    assert {item.category for item in told} == {'Scale', 'Direction', 'Semantic'}
    assert sum(item.provenance['affected'] == 'yes' for item in told) >= 5
    assert all(item.context_change for item in told)
    plain = of_run(questions, Hypo3DRun.UNCHANGED)
    assert plain
    assert not any(item.context_change for item in plain)
    answers = {item.provenance['item']: item.answer for item in plain}
    irrelevant = of_run(questions, Hypo3DRun.IRRELEVANT)
    assert irrelevant
    # What is told there has nothing to do with the answer.
    assert all(item.answer == answers[item.provenance['item']] for item in irrelevant)
    assert len({item.id for item in questions}) == len(questions)


def test_a_perfect_map_is_right_after_a_told_change_and_stale_without(generated):
    found = scored(perfect_map(), generated[0])
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
    found = scored(replace(semantic_map, graph=graph), generated[0])
    assert found['accuracy_told', ''].value < 0.9
    assert found['accuracy_unchanged', ''].value < 0.9


def test_an_answer_that_an_irrelevant_change_flips_is_counted(generated):
    """In a map that takes the thing of one change for that of another, telling flips answers."""
    questions, _ = generated
    irrelevant = of_run(questions, Hypo3DRun.IRRELEVANT)[0]
    flipped = replace(irrelevant, context_change=of_item(questions, irrelevant).context_change)
    asked = [*of_run(questions, Hypo3DRun.UNCHANGED), flipped]
    found = scored(perfect_map(), asked)
    assert found['hallucination_rate', ''].value == 1.0
    assert found['hallucination_rate', ''].n == 1


def of_item(questions, item):
    """Return the told question of an item, whose change does change the answer."""
    return next(
        other
        for other in of_run(questions, Hypo3DRun.TOLD)
        if other.provenance['item'] == item.provenance['item']
    )


def test_a_map_without_things_has_no_figures(generated):
    semantic_map = perfect_map()
    nodes = tuple(n for n in semantic_map.graph.nodes if n.kind is NodeKind.ROOM)
    empty = replace(semantic_map, graph=replace(semantic_map.graph, nodes=nodes, edges=()))
    found = scored(empty, generated[0])
    assert ('accuracy_told', '') not in found
    assert scored(perfect_map(), []) == {}


def test_a_scene_that_was_mapped_again_is_asked_without_being_told(generated, tmp_path):
    questions, changes = generated
    file = tmp_path / 'questions.jsonl'
    write_records(file, questions)
    scene = apply_changes(furnished_room(), (changes[0],))
    graph = build_ground_truth_graph(scene)
    truth = replace(truth_of_room(), scene=scene.name, graph=graph, visible_graph=None)
    told = [
        q for q in of_run(questions, Hypo3DRun.TOLD) if q.provenance['changed_scene'] == scene.name
    ]
    assert told
    new, old = ground_truth_map(graph, graph.by_id, truth.label_set), perfect_map()
    values = []
    for semantic_map in (new, old):
        context = SuiteContext(scene.name, semantic_map, truth)
        found = figures(make_suite('hypo3d', {'before': str(file)}), context)
        figure = found['', 'accuracy_remapped', '']
        assert figure.n == len(told)
        values.append(figure.value)
    assert values[0] == 1.0 > values[1]


SUITES = [{'name': 'hypo3d', 'options': {'remap': True, 'live_maps_every': 10}}]
CONFIG = small_config(
    suites=SUITES,
    camera={'width': 320, 'height': 240},
    trajectory={'goals': 4, 'frame_rate_hz': 1, 'max_frames': 40},
)


def load(item):
    return apply_changes(furnished_room(), item.changes)


@pytest.fixture(scope='module')
def mapped(tmp_path_factory):
    """Return a run as far as it is prepared."""
    preparation = Preparation(load)
    config = MatrixConfig.model_validate(CONFIG)
    (plan,) = preparation.plans(config, tmp_path_factory.mktemp('runs') / config.name)
    preparation.prepare(plan, silent)
    preparation.write_true_trajectory(plan)
    return plan, preparation


@pytest.mark.full
@pytest.mark.gl
def test_a_run_with_the_suite_prepares_questions_and_changes_that_load(mapped, tmp_path):
    plan, preparation = mapped
    folder = plan.shared_directory
    questions = read_records(folder / 'questions.jsonl', Question)
    assert {q.suite for q in questions} == {'hypo3d', 'exact_questions'}
    files = sorted(folder.glob('hypo3d_change_*.yaml'))
    assert len(files) == 3
    scenes = {load(SceneConfig.model_validate({'changes': str(file)})).name for file in files}
    assert set() < {q.provenance['changed_scene'] for q in told(plan)} <= scenes
    other = MatrixConfig.model_validate({**CONFIG, 'suites': [{'name': 'map_geometry'}]})
    (plan,) = preparation.plans(other, tmp_path)
    assert not list(preparation.prepare(plan, silent).glob('hypo3d*'))


def told(plan):
    asked = read_records(plan.shared_directory / 'questions.jsonl', Question)
    return [q for q in asked if q.provenance.get('run') == Hypo3DRun.TOLD.value]


def question(item, changed, run, kind='Scale'):
    known = Question('', 'hypo3d', 'room', kind, 'Is there a bed?', AnswerType.YES_NO, 'yes')
    own = {'item': item, 'changed_scene': changed, 'run': run.value, 'change': 'movement'}
    return replace(known, id=f'{item}{changed}{run.value}', category=kind, provenance=own)


def test_the_gap_is_the_difference_over_the_questions_that_both_have():
    items = [(str(number), f'scene {number % 4}') for number in range(8)]
    before = [question(*item, Hypo3DRun.TOLD, 'Scale' if n < 4 else 'Direction')
              for n, item in enumerate(items)]  # fmt: skip
    after = [question(*item, Hypo3DRun.REMAPPED) for item in (*items, ('9', 'scene 0'))]
    right = {q.id: n in (0, 5) for n, q in enumerate(before)}
    right |= {q.id: n != 3 for n, q in enumerate(after)}
    verdicts = [Verdict(key, value, 'test') for key, value in right.items()]
    found = {item.class_name: item for item in imagination_gap([*before, *after], verdicts)}
    # Told 2 of 8, mapped again 7 of 8.
    assert found[''].value == pytest.approx(5 / 8)
    assert found[''].low < 5 / 8 < found[''].high
    assert found[''].n == 8
    assert found['Scale'].value == pytest.approx(2 / 4)
    assert found['Direction'].value == pytest.approx(3 / 4)
    assert found['movement'].value == found[''].value
    assert not list(imagination_gap(after, verdicts))


@pytest.mark.full
@pytest.mark.gl
def test_the_changed_scenes_are_driven_through_on_the_same_path(mapped, tmp_path):
    plan, preparation = mapped
    again, live = matrix_on_disk.make_derived_matrices([plan])
    changed = dict.fromkeys(item.provenance['changed_scene'] for item in told(plan))
    names = [load(item).name for item in again.scenes]
    assert names == list(changed)
    assert [item.name for item in again.mappers] == ['oracle']
    assert (
        again.name
        == matrix_on_disk.locate_derived_matrix(plan, matrix_on_disk.REMAPPED).name
        != live.name
    )
    assert not again.evaluation.map_every_frames
    assert live.evaluation.map_every_frames == 10
    assert not live.scenes[0].changes
    (condition,) = live.loaded_conditions
    assert condition.name == 'changed_halfway'
    assert apply_changes(furnished_room(), condition.scene_change.changes).name == names[0]
    # The nested runs ask what was told, and nothing new.
    nested = preparation.plans(again, tmp_path / again.name)[0]
    folder = preparation.prepare(nested, silent)
    paths = [RobotPath.read(at / PATH_FILE) for at in (plan.shared_directory, folder)]
    assert paths[0].states.tolist() == paths[1].states.tolist()
    asked = read_records(folder / 'questions.jsonl', Question)
    assert 'hypo3d' not in {item.suite for item in asked}
    assert not list(matrix_on_disk.make_derived_matrices([nested]))


def left(plan, kind, config, preparation):
    """Leave a nested matrix on disk with its first run done."""
    root = matrix_on_disk.locate_derived_matrix(plan, kind)
    plans = preparation.plans(config, root)
    nested = plans[0]
    preparation.prepare(nested, silent)
    write_manifest(root, config, plans)
    write_run_manifest(nested, '')
    done = RunReport(run_id=nested.identity.run_id, status=Status.COMPLETE)
    write_json(nested.report_file, done.model_dump(mode='json'))
    return nested


@pytest.mark.full
@pytest.mark.gl
def test_figures_of_what_was_mapped_beside_stand_in_the_report_of_the_run(mapped):
    plan, preparation = mapped
    again, live = matrix_on_disk.make_derived_matrices([plan])
    other = left(plan, matrix_on_disk.REMAPPED, again, preparation)
    derived = matrix_on_disk.find_derived_runs(plan, matrix_on_disk.REMAPPED)
    assert [item.identity for item in derived] == [other.identity]
    asked = told(plan)
    others = read_records(plan.shared_directory / 'questions.jsonl', Question)
    others = [q for q in others if q.suite != 'hypo3d'][:2]
    assert others, 'questions of other suites lie in the same folder'
    write_answers(plan, [*others, *asked], right=False)
    name = asked[0].provenance['changed_scene']
    remapped = [
        replace(q, id=f'{q.id}-again', provenance={**q.provenance, 'run': 'remapped'})
        for q in asked
        if q.provenance['changed_scene'] == name
    ]
    write_answers(other, remapped, right=True)
    in_motion = left(plan, matrix_on_disk.LIVE, live, preparation)
    write_growth(in_motion, {10: 0.9, 20: 0.0, 30: 0.6, 40: 0.8})
    before = RunReport(run_id=plan.identity.run_id, status=Status.COMPLETE)
    (report,) = with_changed_scenes([before], [plan])
    found = {(item.metric, item.class_name): item for item in report.metrics}
    assert found['imagination_gap', ''].value == 1.0
    assert found['imagination_gap', ''].n == len(remapped)
    assert found['accuracy_remapped', ''].value == 1.0
    assert found['accuracy_live', ''].value == 0.8
    # The change comes halfway; the map of 30 frames is the first that knows it.
    assert 0 < found['frames_until_updated', ''].value < 30
    write_growth(in_motion, {10: 0.9, 20: 0.0, 30: 0.6, 40: 0.5})
    (report,) = with_changed_scenes([before], [plan])
    found = {item.metric: item for item in report.metrics if not item.class_name}
    assert found['frames_until_updated'].value is None, 'the last map does not know it'


def write_answers(plan, questions, *, right):
    folder = plan.directory / 'vqa'
    folder.mkdir(parents=True, exist_ok=True)
    write_records(folder / 'questions.jsonl', questions)
    write_records(folder / 'answers.jsonl', [Answer(q.id, q.answer, 'test') for q in questions])
    write_records(folder / 'verdicts.jsonl', [Verdict(q.id, right, 'test') for q in questions])


def write_growth(plan, values):
    shares = {
        frames: join_run(plan.identity, [MetricRecord('hypo3d', '', AFFECTED, value=value, n=5)])
        for frames, value in values.items()
    }
    moments = tuple(ScoresAtTime(frames, frames, found) for frames, found in shares.items())
    growth = ReportOverTime(run_id=plan.identity.run_id, moments=moments, metrics=())
    (plan.directory / OVER_TIME).unlink(missing_ok=True)
    write_json(plan.directory / OVER_TIME, growth.model_dump(mode='json'))


def test_a_language_model_is_told_of_the_change_and_asked_about_the_scene_after_it(
    generated, tmp_path
):
    questions, _ = generated
    context = SuiteContext('room', perfect_map(), truth_of_room(), questions=questions)
    with LoopbackModels(reply=lambda _prompt: '{"answers": []}') as server:
        suite = make_suite('hypo3d', {
            'answerer': 'graph:openai:m', 'base_url': server.url, 'cache': str(tmp_path / 'cache'),
        })  # fmt: skip
        assert suite.language_models == ('openai:m',)
        found = figures(suite, context, 'metric', 'class_name')
    prompts = '\n'.join(item.prompt for item in server.received)
    sentence = next(item.context_change for item in questions if item.context_change)
    assert sentence in prompts
    assert 'answer for the scene after it' in ' '.join(prompts.split())
    assert found['accuracy_told', ''].value == 0.0, 'the model leaves all open'
    assert found['ceiling_ground_truth', ''].value == 1.0, 'the rules do not'
