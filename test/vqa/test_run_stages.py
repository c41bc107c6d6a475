"""The verbs of `osmabench vqa` on a run directory, offline and against a server."""

import csv
import io
import json
import shutil
from collections import deque
from dataclasses import replace
from functools import partialmethod

import numpy as np
import pytest
from PIL import Image
from support import scripted_model
from support.commands import osmabench
from support.libraries import needs_embedder
from support.loopback_models import LoopbackModels, Misstep
from support.sizes import few
from support.world.graphs import as_map, ground_truth_of, living_room, vocabulary

from osmabench_ros.errors import IncompleteError, OsmabenchError, QuestionError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.language.client import ModelClient
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.language.prompts import load_prompt
from osmabench_ros.maps.semantic_map import IN_SCENE_GRAPH
from osmabench_ros.maps.storage import write_map
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.runs.evaluation import EvaluationInputs, evaluate_run
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.matrix_on_disk import questioned_map
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.sequences.ground_truth import read_ground_truth, write_ground_truth
from osmabench_ros.vqa import stages
from osmabench_ros.vqa.question_files import read_records, write_records
from osmabench_ros.vqa.questions import AnswerType, Question, Verdict
from osmabench_ros.vqa.stages import RunFolder

pytestmark = pytest.mark.xdist_group('sentence embedder')

GRAPH = living_room()
KEY = 'sk-secret-0123456789'


def note_shared(run, shared, seed):
    """Write what the manifest of a run says about its path."""
    run.mkdir(parents=True, exist_ok=True)
    noted = {'shared': shared, 'seeds': {'scene': 5, 'path and questions': seed, 'mapper': 5}}
    (run / 'manifest.json').write_text(json.dumps(noted))


@pytest.fixture
def run_directory(tmp_path):
    run = tmp_path / 'matrix' / 'test.room.baseline.oracle.opengl.5'
    truth = ground_truth_of(GRAPH, camera_poses=(Pose.identity(),) * 3)
    write_ground_truth(truth, tmp_path / 'matrix' / 'shared' / 'test.room.5' / 'ground_truth')
    write_map(as_map(GRAPH, vocabulary(GRAPH)), run / 'map')
    note_shared(run, 'test.room.5', 5)
    (run / 'frames').mkdir()
    for index in (0, 2):
        Image.new('RGB', (8, 8), (index, 0, 0)).save(run / 'frames' / f'{index:06d}.png')
    return run


def test_a_run_shares_what_its_manifest_names_whatever_its_name(run_directory):
    runs = run_directory.parent
    (runs / 'shared' / 'test.room.5').rename(runs / 'shared' / 'test.room.5-p7')
    for name in ('test.room.baseline.oracle.opengl.5-p7-m2.x0-5', 'renamed'):
        note_shared(runs / name, 'test.room.5-p7', 7)
        run = RunFolder(runs / name)
        assert run.ground_truth().scene == 'room'
        assert (run.scene, run.seed) == ('test.room.5-p7', 7)


def judged(run, count, *options):
    """Go through all stages but the report by rule; return the last result."""
    osmabench('vqa', 'generate', run, '--count', count, *options)
    osmabench('vqa', 'answer', run)
    return osmabench('vqa', 'judge', run)


def scores_of(run):
    return json.loads((run / 'vqa' / 'scores.json').read_text())['metrics']


def test_every_stage_runs_alone_and_offline(run_directory):
    result = judged(run_directory, 60, '--seed', 3)
    assert '60 of 60 answers are right' in result.output
    result = osmabench('vqa', 'report', run_directory)
    assert 'Existence-Negative' in result.output
    assert 'answering by rule\njudging by deterministic\n' in result.output
    scores = scores_of(run_directory)
    overall = {r['metric']: r['value'] for r in scores if not r['class_name']}
    assert overall['accuracy'] == overall['ceiling_ground_truth'] == 1.0
    assert overall['baseline_always_no'] < 0.5
    osmabench('vqa', 'report', run_directory, '--compat')
    scores = scores_of(run_directory)
    functional = [r for r in scores if r['class_name'] == 'Relations-Functional']
    assert functional
    assert not any(r['applicable'] for r in functional)


def test_several_runs_are_compared_over_what_all_their_maps_can_serve(run_directory):
    related = as_map(GRAPH, vocabulary(GRAPH))
    bare = run_directory.with_name(run_directory.name.replace('oracle', 'bare'))
    write_map(replace(related, graph=SceneGraph(GRAPH.nodes)), bare / 'map')
    note_shared(bare, 'test.room.5', 5)
    for run in (run_directory, bare):
        judged(run, 60, '--seed', 3)
    alone = osmabench('vqa', 'report', bare).output
    assert 'accuracy_of_common' not in alone
    scores = scores_of(bare)
    overall = {r['metric']: r for r in scores if not r['class_name']}
    own, macro = overall['accuracy_served'], overall['accuracy_macro']
    assert f'accuracy_macro: {100 * macro["value"]:.1f} %, n = {macro["n"]}' in alone
    both = osmabench('vqa', 'report', run_directory, bare).output
    assert both.index(str(run_directory)) < both.index(str(bare))
    lines = [line for line in both.splitlines() if line.startswith('accuracy_of_common')]
    # What the map without relations can serve is common to both.
    shares = (1.0, own['value'])
    assert lines == [f'accuracy_of_common: {100 * v:.1f} %, n = {own["n"]}' for v in shares]
    assert own['n'] < 60
    judged(bare, 60, '--seed', 4)
    with pytest.raises(QuestionError, match='asked different questions'):
        osmabench('vqa', 'report', run_directory, bare)


def captioned(node):
    """A node of a method without labels, which names things in sentences."""
    return replace(node, labels=(), captions=(f'a picture of a {node.label}',))


@pytest.mark.full
@needs_embedder
def test_the_commands_find_what_the_suite_of_the_run_found(run_directory, tmp_path):
    nodes = [captioned(node) for node in GRAPH.nodes]
    dropped = [i for i, node in enumerate(nodes) if node.kind is NodeKind.OBJECT][:4]
    for i in dropped:
        nodes[i] = replace(nodes[i], attributes={IN_SCENE_GRAPH: False})
    recorded = as_map(SceneGraph(tuple(nodes), GRAPH.edges), method='captions')
    shutil.rmtree(run_directory / 'map')
    write_map(recorded, run_directory / 'map')
    shared = run_directory.parent / 'shared' / 'test.room.5'
    truth = read_ground_truth(shared / 'ground_truth')
    ids = np.array([item.id for item in truth.label_set.classes], np.int32)
    points = np.zeros((len(ids), 3), np.float32)
    surface = LabelledCloud(points, ids, np.arange(len(ids), dtype=np.int32))
    shutil.rmtree(shared / 'ground_truth')
    write_ground_truth(replace(truth, surface=surface), shared / 'ground_truth')
    inputs = EvaluationInputs(
        RunIdentity(SceneKey('test', 'room', 5), 'baseline', 'oracle', 'opengl'),
        run_directory / 'map',
        shared / 'ground_truth',
        tmp_path / 'evaluated',
        run_directory / 'vqa' / 'questions.jsonl',
    )
    osmabench('vqa', 'generate', run_directory, '--count', 60)
    report = evaluate_run(inputs, [SuiteConfig(name='exact_questions')])
    of_suite = [item.to_json() for item in report.metrics]
    for verb in ('answer', 'judge', 'report'):
        osmabench('vqa', verb, run_directory)
    for name in ('answers.jsonl', 'verdicts.jsonl'):
        ours, theirs = (root / 'vqa' / name for root in (run_directory, inputs.output_directory))
        assert ours.read_bytes() == theirs.read_bytes()
    scores = scores_of(run_directory)
    assert scores == of_suite
    values = {item['metric']: item['value'] for item in scores if not item['class_name']}
    assert 0.5 < values['accuracy'] < values['ceiling_ground_truth'] == 1.0


def test_what_the_judge_failed_on_leaves_the_denominator_in_compat_only(run_directory):
    judged(run_directory, 40)
    path = run_directory / 'vqa' / 'verdicts.jsonl'
    verdicts = read_records(path, Verdict)
    lost = [replace(v, correct=False, judged=False) for v in verdicts[:3]]
    write_records(path, [*lost, *verdicts[3:]])

    def overall(*options):
        osmabench('vqa', 'report', run_directory, *options)
        scores = scores_of(run_directory)
        (row,) = [r for r in scores if r['metric'] == 'accuracy' and not r['class_name']]
        return row['value'], row['n']

    questions = read_records(run_directory / 'vqa' / 'questions.jsonl', Question)
    functional = sum(q.category == 'Relations-Functional' for q in questions)
    assert overall() == (37 / 40, 40)
    assert overall('--compat') == (1.0, 37 - functional)


@pytest.mark.parametrize(
    ('verb', 'remedy'), [('answer', 'vqa generate'), ('judge', 'vqa'), ('report', 'vqa')]
)
def test_a_stage_without_the_one_before_names_it(run_directory, verb, remedy):
    with pytest.raises(OsmabenchError, match=remedy):
        osmabench('vqa', verb, run_directory)


def test_all_stages_by_a_model_then_again_from_the_cache(run_directory, tmp_path, monkeypatch):
    monkeypatch.setenv('OPENAI_API_KEY', KEY)
    folder = ('--folder', 'written_questions')
    with LoopbackModels(reply=scripted_model.reply) as server:
        model = ('--base-url', server.url, '--cache', tmp_path / 'cache')

        def stages():
            asked = [
                ('generate', '--kind', 'written', '--model', 'openai:m', *model),
                ('answer', '--answerer', 'openai:m', *model),
                ('judge', '--judge', 'openai:m', *model),
                ('report',),
            ]
            results = [osmabench('vqa', *words, run_directory, *folder) for words in asked]
            return ''.join(result.output for result in results)

        first = stages()
        asked = len(server.received)
        written = run_directory / 'written_questions'
        kept = {
            path.name: path.read_bytes()
            for path in written.iterdir()
            if not path.name.startswith(('spending', '.'))
        }
        again = stages()
        assert len(server.received) == asked > 0
    assert '0 requests, ' in again
    assert [name for name, data in kept.items() if (written / name).read_bytes() != data] == []
    generation = json.loads(kept['generation.json'])
    assert generation['removals']
    assert [name.split('/')[0] for name in generation['prompts']] == [
        'describe_frame', 'write_questions', 'check_questions'
    ]  # fmt: skip
    assert 'answering by openai/m, prompt answer_from_graph/1/' in again
    assert 'to fit 60000 tokens: 0 nodes, 0 relations' in again
    assert json.loads(kept['scores.json'])['judging']['prompt'].startswith('judge_answers/')
    answering = json.loads(kept['answering.json'])
    assert answering['dropped_nodes'] == 0
    assert answering['prompt'].startswith('answer_from_graph/1/')
    files = [path.read_text('utf-8', 'replace') for path in tmp_path.rglob('*') if path.is_file()]
    assert not [text for text in (first, again, *files) if KEY in text]


AWAY = Misstep('status', 401)
FAILURES = {
    'key': (AWAY, '401 Unauthorized from http://127.0.0.1'),
    'schema': (Misstep('truncated'), 'replies outside the schema'),
    'redirect': (Misstep('status', 302, (('Location', 'http://h.example/'),)), 'redirects to'),
}


@pytest.mark.parametrize('name', few(FAILURES, 'key'))
def test_a_server_that_fails_leaves_no_score_and_the_same_command_asks_the_rest(
    run_directory, tmp_path, monkeypatch, name
):
    always, reason = FAILURES[name]
    quick = partialmethod(ModelClient.__init__, attempts=2, first_wait_s=0.01)
    monkeypatch.setattr(ModelClient, '__init__', quick)
    vqa = run_directory / 'vqa'

    def stage(verb, *more):
        words = ('--base-url', server.url, '--cache', cache, '--concurrency', 1)
        return osmabench('vqa', verb, run_directory, *more, *words)

    def stages(verb, *more):
        """Fail after two replies, see that no later stage takes it, then go on."""
        server.missteps, server.always = deque([Misstep('ok')] * 2), always
        before = len(server.received)
        with pytest.raises(IncompleteError, match=reason) as error:
            stage(verb, *more)
        assert error.value.exit_code != 0
        assert 'run the same command again' in str(error.value)
        with pytest.raises(IncompleteError, match=f'osmabench vqa {verb}'):
            osmabench('vqa', 'report', run_directory)
        assert not (vqa / 'scores.json').exists()
        server.always, failed = None, len(server.received)
        stage(verb, *more)
        return len(server.received) - failed, failed - before

    with LoopbackModels(reply=scripted_model.reply) as server:
        cache = tmp_path / 'cache'
        judged(run_directory, 45)
        osmabench('vqa', 'report', run_directory)
        asked, _ = stages('answer', '--answerer', 'openai:m')
        assert asked == 3, 'of five batches two were answered'
        kept = {path.name: path.read_bytes() for path in vqa.iterdir()}
        cache = tmp_path / 'another'
        stage('answer', '--answerer', 'openai:m')
        assert (vqa / 'answers.jsonl').read_bytes() == kept['answers.jsonl']
        assert (vqa / 'answering.json').read_bytes() == kept['answering.json']
        server.always = AWAY
        with pytest.raises(IncompleteError, match='verdicts unanswered'):
            stage('judge', '--judge', 'openai:m')
        with pytest.raises(IncompleteError, match='osmabench vqa judge'):
            osmabench('vqa', 'report', run_directory)
        server.always = None
        stage('judge', '--judge', 'openai:m')
        assert 'judging by openai/m' in osmabench('vqa', 'report', run_directory).output


@pytest.mark.parametrize('model', ['openai:m', 'gemini:m'])
def test_a_dry_run_asks_nobody_needs_no_key_and_tells_the_cost(
    run_directory, tmp_path, monkeypatch, model
):
    for name in ('OPENAI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY', 'OPENAI_BASE_URL'):
        monkeypatch.delenv(name, raising=False)
    osmabench('vqa', 'generate', run_directory, '--count', 25)
    words = ('--cache', tmp_path / 'cache', '--output-price', 2.0, '--dry-run')

    def dry(verb, *more):
        return osmabench('vqa', verb, run_directory, *more, *words).output

    said = dry('answer', '--answerer', model)
    assert '3 requests, 0 of them in the cache' in said
    assert f'cost at most {3 * 8192 * 2 / 1e6:.4f}' in said
    # Two frames: describe and write each, and check all questions, five at a time.
    most = sum(item['most'] for item in load_prompt('write_questions').model_extra['categories'])
    written = dry('generate', '--kind', 'written', '--model', model)
    assert f'{2 * (2 + -(-most // 5))} requests' in written
    assert 'no request' in dry('generate', '--count', 7)
    assert len(read_records(run_directory / 'vqa' / 'questions.jsonl', Question)) == 25
    osmabench('vqa', 'answer', run_directory)
    assert 'requests, 0 of them in the cache' in dry('judge', '--judge', model)
    assert 'makes no request' in dry('judge')
    with pytest.raises(OsmabenchError, match='name a model'):
        dry('answer', '--answerer', model[:-1])
    with pytest.raises(OsmabenchError, match='needs a key'):
        osmabench('vqa', 'answer', run_directory, '--answerer', model)
    with pytest.raises(OsmabenchError, match='is not the folder of a run'):
        osmabench('vqa', 'answer', run_directory.parent)


@pytest.mark.full
def test_a_run_is_answered_with_tools_and_from_its_frames(run_directory, tmp_path):
    osmabench('vqa', 'generate', run_directory, '--count', 12)
    with LoopbackModels(reply=scripted_model.reply) as server:
        words = ('--base-url', server.url, '--cache', tmp_path / 'cache', '--answerer')
        result = osmabench('vqa', 'answer', '--dry-run', run_directory, *words, 'tools:openai:m')
        assert 'depends on the replies' in result.output
        osmabench('vqa', 'answer', run_directory, *words, 'frames:openai:m')
        images = {len(r.body['messages'][-1]['content']) - 1 for r in server.received}
        assert images == {len(list((run_directory / 'frames').iterdir()))}
        server.act = lambda request: [('list_rooms', '{}')]
        osmabench('vqa', 'answer', run_directory, *words, 'tools:openai:m')
        with pytest.raises(OsmabenchError, match='--compat'):
            osmabench('vqa', 'answer', run_directory, *words, 'tools:openai:m', '--compat')
    osmabench('vqa', 'judge', run_directory)
    result = osmabench('vqa', 'report', run_directory)
    assert 'answering by openai/m tools' in result.output
    assert '12 answers came to no end: no answer within 12 rounds of tools' in result.output


def test_images_of_questions_are_found_where_their_file_came_from(run_directory):
    place = RunFolder(run_directory)
    kind = AnswerType.TEXT
    asked = [
        Question('q', 's', place.scene, 'c', 'What is this?', kind, 'sofa', images=('1.png',))
    ]
    assert place.question_images(asked) == place.folder, 'it is named where it is missing'
    Image.new('RGB', (4, 4)).save(place.shared / '1.png')
    assert place.question_images(asked) == place.shared
    write_records(place.folder / 'questions.jsonl', asked)
    Image.new('RGB', (4, 4)).save(place.folder / '1.png')
    assert place.question_images(asked) == place.folder


def test_written_questions_need_a_model_and_frames(run_directory):
    with pytest.raises(OsmabenchError, match='--model'):
        osmabench('vqa', 'generate', run_directory, '--kind', 'written')
    for frame in (run_directory / 'frames').iterdir():
        frame.unlink()
    with pytest.raises(OsmabenchError, match='frames'):
        osmabench(
            'vqa', 'generate', run_directory, '--kind', 'written', '--model', 'openai:m',
            '--base-url', 'http://127.0.0.1:9',
        )  # fmt: skip


def saved(path, rows):
    keys = ('question', 'answer', 'category', 'scene_graph_answer', 'similar')
    path.write_text('\n'.join(json.dumps(dict(zip(keys, row, strict=True))) for row in rows))
    return path


def test_judge_check_lists_verdicts_that_contradict_equality(tmp_path, monkeypatch):
    monkeypatch.setattr(SentenceEmbedder, 'is_available', staticmethod(lambda: False))
    path = saved(
        tmp_path / 'a.jsonl',
        [
            ('Is it red?', 'Yes', 'General', 'yes', 'Yes'),
            ('Is it blue?', 'No', 'General', 'No', 'No'),
            ('What is it?', 'lamp', 'Relations', 'the lamp', 'Yes'),
            ('What else?', 'lamp', 'Relations', 'bed', 'No'),
        ],
    )
    result = osmabench('vqa', 'judge-check', path)
    assert result.exit_code == 0
    assert 'doubtful published verdicts: 1\n  1 equality is contradicted' in result.output
    assert 'Is it blue?' in result.output
    assert '75.00 %' in result.output


def test_score_answers_prints_both_formats(tmp_path):
    path = saved(
        tmp_path / 'a.jsonl', [('a?', 'Yes', 'c', 'No', 'Yes'), ('b?', 'x', 'd', 'x', 'No')]
    )
    rows = json.loads(osmabench('score', 'answers', path, '--format', 'json').output)
    assert [row['answers'] for row in rows] == [
        'given', 'always yes', 'always no', 'most frequent', 'question only'
    ]  # fmt: skip
    assert (rows[0]['accuracy'], rows[0]['c'], rows[0]['d']) == (0.5, 1.0, 0.0)
    text = osmabench('score', 'answers', path, '--no-baselines').output
    assert text.splitlines()[0].startswith('scene,condition,answers,questions,unjudged,accuracy')
    assert len(text.splitlines()) == 2


def test_a_map_is_described_with_the_scene_and_condition_of_its_run(run_directory):
    dataset, scene, condition, *_ = run_directory.name.split('.')
    noted = {'run_id': run_directory.name, 'dataset': dataset, 'scene': scene}
    (run_directory / 'manifest.json').write_text(json.dumps({**noted, 'condition': condition}))
    said = osmabench('map', 'info', run_directory / 'map').output
    assert f'{scene}, condition {condition}' in said


def test_saved_answers_of_a_run_are_scored_as_the_run_was(run_directory):
    judged(run_directory, 40)
    verdicts = run_directory / 'vqa' / 'verdicts.jsonl'
    verdicts.write_text(verdicts.read_text().replace('"correct":true', '"correct":false', 10))
    scored = stages.report(RunFolder(run_directory), questioned_map(RunFolder(run_directory)))
    wanted = next(i for i in scored if (i.metric, i.class_name) == ('accuracy', ''))
    assert wanted.value == 0.75
    for given in (run_directory.parent, run_directory / 'vqa' / 'answers.jsonl'):
        said = osmabench('score', 'answers', given, '--no-baselines').output
        [row] = csv.DictReader(io.StringIO(said))
        assert float(row['accuracy']) == pytest.approx(wanted.value)
        assert (int(row['questions']), row['condition']) == (wanted.n, 'baseline')
    (run_directory / 'vqa' / 'questions.jsonl').write_text('')
    with pytest.raises(OsmabenchError, match=r'questions\.jsonl next to it has no'):
        osmabench('score', 'answers', run_directory)
