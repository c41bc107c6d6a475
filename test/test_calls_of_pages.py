"""Every call of osmabench on a page: all are parsed, and most are run as they are printed."""

import json
import re
import shlex
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import trimesh
import yaml
from cli.test_scene_import import WORLD
from maps.importers.method_files import write_conceptgraphs
from support import scripted_model
from support.commands import group, parse
from support.loopback_models import LoopbackModels
from support.published_rows import boxed, change, line
from support.world.maps import cloud as true_cloud
from support.world.maps import labelled_map, sample_map
from support.world.matrix import SCENE_KEY, config, left_by_a_command, write_matrix
from support.world.recorded_room import cloud, labels, write_room
from support.world.runs import small_config
from support.world.scenes import room_scene, write_space3d_folder
from typer.testing import CliRunner

from osmabench_ros.base.files import claim_folder
from osmabench_ros.cli.main import app
from osmabench_ros.geometry.point_files import write_ply
from osmabench_ros.maps.storage import write_map
from osmabench_ros.metrics.confusion import ConfusionMatrix, write_confusions
from osmabench_ros.runs.config import parse_config
from osmabench_ros.scenes.writing import write_scene_folder

REPOSITORY = Path(__file__).parents[1]
# Pages that test_tutorial, test_robots_page and test_contributing run.
OWN_TESTS = {'tutorial.md', 'robots.md', 'CONTRIBUTING.md'}

# Beginnings of calls that are parsed and not run, by the reason.
ONLY_PARSED = {
    'takes minutes or needs a running stack': (
        r'run .*--speeds', r'bag (record|replay)', r'doctor --stack',
    ),
    'needs a third-party method or scene': (
        r'run .*(rtabmap|conceptgraphs|bbq|hovsg|small_house).*\.yaml',
    ),
    'reads third-party data': (r'scene import replica',),
    'needs the text encoder of a map': (r'map label map/ --label-set classes.json --out',),
}  # fmt: skip
# Beginnings of calls that take more than five seconds, for the full size.
SLOW = (
    r'run', r'scene (generate|ground-truth|check)', r'scene export apartment',
    r'conditions preview', r'bag evaluate BAG --scene', r'doctor', r'report', r'export',
)  # fmt: skip
SHORT = {
    'camera': {'width': 64, 'height': 48},
    'trajectory': {'goals': 1, 'frame_rate_hz': 1.0, 'max_frames': 2},
}
OUTPUTS = ('--out', '-o', '--to')
CLASSES = [{'id': 4, 'name': 'table'}, {'id': 8, 'name': 'chair'}]
STAGE = """#usda 1.0
(
  upAxis = "Z"
  metersPerUnit = 1
)
def Cube "Box_1"
{
    double size = 1
}
"""
NR3D = """utterance,tokens,mentions_target_class,stimulus_id,predicted_id
the long desk,"['the', 'long', 'desk']",True,s-desk-2-3-4,4
"""


def calls_of(page):
    """Return the calls of osmabench in the blocks of a page, without remarks and variables."""
    text = page.read_text('utf-8')
    fenced = re.findall(r'^```(\w*)\n(.*?)^```', text, re.DOTALL | re.MULTILINE)
    blocks = [block for kind, block in fenced if kind in ('', 'bash', 'sh')]
    outside = re.sub(r'^```.*?^```', '', text, flags=re.DOTALL | re.MULTILINE)
    indented = re.findall(r'^ {4}(?:[A-Z_]+=\S+ )*osmabench .*', outside, re.MULTILINE)
    joined = '\n'.join([*blocks, *indented]).replace('\\\n', ' ')
    calls = [re.split(r'\s{2,}|\s#', text.strip())[0] for text in joined.splitlines()]
    calls = [re.sub(r'^(\w+=\S+ |cd \S+ && )+', '', text) for text in calls]
    return [text.replace('...', '') for text in calls if text.startswith('osmabench ')]


PAGES = [
    page
    for page in (REPOSITORY / 'README.md', REPOSITORY / 'CONTRIBUTING.md',
                 *sorted((REPOSITORY / 'docs').glob('*.md')))
    if calls_of(page)
]  # fmt: skip


def starts(call, beginnings):
    return any(re.match(f'osmabench {text}', call) for text in beginnings)


def is_parsed_only(call):
    return any(starts(call, beginnings) for beginnings in ONLY_PARSED.values())


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_every_call_is_one_that_the_command_takes(page):
    for call in calls_of(page):
        try:
            parse(shlex.split(call)[1:])
        except Exception as error:
            pytest.fail(f'{page.name}: {call}: {error}')


def test_commands_and_options_that_texts_and_messages_name_exist():
    folders = ('docs', 'osmabench_ros', 'config', 'launch', 'benchmarks', 'examples')
    files = [REPOSITORY / 'README.md', REPOSITORY / 'CONTRIBUTING.md']
    files += [path for folder in folders for path in (REPOSITORY / folder).rglob('*.*')
              if path.suffix in ('.md', '.py', '.yaml', '.sh')]  # fmt: skip
    for path in files:
        for text in re.findall(r'`osmabench ([^`\n]+)`', path.read_text('utf-8')):
            words = text.split()
            command = group()
            while hasattr(command, 'commands') and words and re.match('[a-z]', words[0]):
                assert words[0] in command.commands, f'{path}: {text}'
                command = command.commands[words.pop(0)]
            known = [
                name for item in command.params for name in (*item.opts, *item.secondary_opts)
            ]
            wanted = [word.partition('=')[0] for word in words if word.startswith('--')]
            assert {*wanted} <= {*known, '--help', '--version'}, f'{path}: {text}'


@pytest.mark.parametrize(
    ('words', 'fault'),
    [
        (['run', 'config.yaml', '--jbos', '4'], '--jbos'),
        (['ran', 'config.yaml'], '"ran"'),
    ],
)
def test_a_call_that_does_not_exist_is_noticed(words, fault):
    with pytest.raises(Exception, match=fault):
        parse(words)


def test_no_reason_is_left_without_a_call():
    calls = [call for page in PAGES for call in calls_of(page)]
    assert len(calls) > 100
    for beginnings in (*ONLY_PARSED.values(), SLOW):
        for text in beginnings:
            assert any(starts(call, (text,)) for call in calls), text


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """Return a folder with the files that the pages name."""
    folder = tmp_path_factory.mktemp('pages') / 'files'
    folder.mkdir()
    data = config().model_dump(mode='json')
    mappers = [*data['mappers'][:2], {'name': 'appearance'}]
    settings = parse_config({**data, 'mappers': mappers, 'requirements': []}, 'test')
    matrix = write_matrix(folder.parent / 'matrix', settings)
    left_by_a_command(matrix, folder / 'runs' / 'demo', settings)
    for name in ('runs_before', 'runs_after'):
        shutil.copytree(folder / 'runs', folder / name)
    for name in ('before', 'after'):
        (folder / name).mkdir()
        shutil.copy(folder / 'runs' / 'demo' / 'report.json', folder / name)
        shutil.copytree(folder / 'runs' / 'demo', folder / name.upper())
    shutil.copy(folder / 'runs' / 'demo' / 'report.json', folder / 'baseline.json')
    small = {**small_config(), **SHORT}
    (folder / 'config').symlink_to(REPOSITORY / 'config')
    for name in ('CONFIG', 'my.yaml', 'my_config.yaml'):
        (folder / name).write_text(yaml.safe_dump(small))
    write_room(folder / 'BAG', cloud(labelled_map()), labels())
    with (folder / 'scan.ply').open('wb') as stream:
        write_ply(stream, dict(zip('xyz', true_cloud().points.T, strict=True)))
    write_conceptgraphs(folder / 'PATH')
    write_map(sample_map(), folder / 'DIR')
    shared = Path('shared', str(SCENE_KEY))
    claim_folder(folder / 'sequences')
    shutil.copytree(matrix.root / shared, folder / 'sequences' / shared)
    np.save(folder / 'text.npy', np.random.default_rng(0).normal(size=(2, 1024)))
    (folder / 'classes.json').write_text(json.dumps({'classes': CLASSES}))
    _write_scenes(folder)
    _write_saved_results(folder)
    return folder


def _write_scenes(folder):
    (folder / 'models').mkdir()
    (folder / 'WORLD.world').write_text(WORLD)
    for name in ('WORLD.usda', 'room.usda'):
        (folder / name).write_text(STAGE)
    write_scene_folder(room_scene(), folder / 'scene', overwrite=False)
    for name in ('lab.glb', 'LAB.glb'):
        trimesh.creation.box((1, 1, 1)).export(folder / name)
    (folder / 'changes.yaml').write_text('- {kind: recolor, object: sofa_01, color: red}\n')
    specification = REPOSITORY / 'config' / 'specifications' / 'office.yaml'
    (folder / 'specifications').mkdir()
    shutil.copy(specification, folder / 'specifications')


def _write_saved_results(folder):
    saved = folder / 'FILES'
    saved.mkdir()
    matrix = ConfusionMatrix(np.array([[6, 2], [1, 3]]), np.array([4, 7]))
    write_confusions({'a': matrix}, saved / 'baseline.npz')
    row = {'question': 'a?', 'answer': 'Yes', 'category': 'c', 'scene_graph_answer': 'Yes'}
    answers = json.dumps([{**row, 'similar': 'Yes'}])
    (saved / 'apt_0_baseline_evaluated.json').write_text(answers)
    for name in ('direction', 'direction-turn'):
        (folder / f'{name}.jsonl').write_text(line(name, 0, 'A', 'A'))
    box = boxed(1, (0, 0, 0), (1, 1, 1), object_name='chair', unique_multiple=0, others=0)
    for name in ('pred.json', 'ScanRefer_filtered_test_gt_bbox.json'):
        (folder / name).write_text(json.dumps([box]))
    (folder / 'nr3d.csv').write_text(NR3D)
    written = change('Movement Change', ('Scale', '3', 'two'))
    (folder / 'answers.json').write_text(json.dumps({'scene0001_00': [written]}))
    for name in ('room_0', 'office_2'):
        write_space3d_folder(folder / 'data' / name, {'1': 'one'})
    for name in ('STANDARD_ANSWERS', 'PROMPTGT_ANSWERS'):
        place = folder / name / 'CG' / 'evaluated_camera'
        place.mkdir(parents=True)
        found = [{'category': 'PromptGT-Relations', 'similar': 'Yes'},
                 {'category': 'Measurement', 'similar': 'No'}]  # fmt: skip
        (place / 'furniture_stage__scene_000_answered.json').write_text(json.dumps(found))


@pytest.fixture
def models(monkeypatch):
    """Answer the requests to every language model of the pages."""
    with LoopbackModels(reply=scripted_model.reply) as server:
        monkeypatch.setenv('OPENAI_BASE_URL', server.url)
        monkeypatch.setenv('GOOGLE_GEMINI_BASE_URL', server.url)
        for name in ('OPENAI_API_KEY', 'GEMINI_API_KEY'):
            monkeypatch.setenv(name, 'sk-of-the-test')
        yield server


@pytest.fixture
def place(files, tmp_path, monkeypatch):
    """Return a copy of the files, which calls run in."""
    folder = Path(shutil.copytree(files, tmp_path / 'place', symlinks=True))
    monkeypatch.chdir(folder)
    monkeypatch.setenv('HOME', str(folder))
    return folder


@pytest.mark.gl
@pytest.mark.filterwarnings('ignore::osmabench_ros.errors.OsmabenchWarning')
@pytest.mark.parametrize(
    ('page', 'skipped'),
    [
        pytest.param(REPOSITORY / 'README.md', SLOW, id='README.md, quick'),
        *(
            pytest.param(page, (), id=page.name, marks=pytest.mark.full)
            for page in PAGES
            if page.name not in OWN_TESTS
        ),
    ],
)
def test_calls_run_as_they_are_printed(page, skipped, place, models):
    if page.name == 'conditions.md':
        shutil.copy(REPOSITORY / 'config' / 'conditions' / 'camera.yaml', place / 'my.yaml')
    run = next(item.name for item in (place / 'runs' / 'demo').glob('*.oracle.*'))
    for call in calls_of(page):
        if is_parsed_only(call) or starts(call, skipped):
            continue
        text = re.sub(r'(runs/demo/)?\bRUN\b', f'runs/demo/{run}', call)
        text = text.replace('runs/NAME', 'runs/demo').replace('RUNS', 'runs/demo')
        text = text.replace('http://127.0.0.1:8000/v1', models.url)
        words = shlex.split(text.replace('SCENE', str(SCENE_KEY)))[1:]
        if words[0] == 'run' and '--dry-run' not in words:
            words.append('--dry-run')  # the rest takes minutes
        if words[:2] != ['scene', 'generate']:  # which keeps earlier output
            _remove_earlier(words)
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f'{call}\n{done.output}\n{done.exception!r}'


def _remove_earlier(words):
    """Remove the output that an earlier line of a page wrote to the same place."""
    outputs = [after for option, after in pairwise(words) if option in OUTPUTS]
    for name in outputs or ['evaluation', 'scene.png']:
        if Path(name).is_dir():
            shutil.rmtree(name)
        else:
            Path(name).unlink(missing_ok=True)
