"""The package that CONTRIBUTING.md leads to in ten minutes, written as the page says."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import setuptools
import yaml
from support.commands import osmabench
from support.distributions import install_distribution
from support.world.box_room import LABELS, frames, ground_truth
from support.world.frames import map_frames
from support.world.scenes import CAMERA, camera_at, room_scene

from osmabench_ros.base.configuration import extension_names
from osmabench_ros.errors import ConfigError, QuestionError
from osmabench_ros.mappers.mapper import make_mapper
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.semantics.scene_graph import ScoredLabel
from osmabench_ros.simulation.conditions import load_condition, parse_condition
from osmabench_ros.simulation.effects import Shot
from osmabench_ros.simulation.simulator import make_simulator
from osmabench_ros.suites.suite import SuiteContext, make_suite
from osmabench_ros.vqa.wording import parsed

# Python has a TOML parser since 3.11.
tomllib = pytest.importorskip('tomllib' if sys.version_info >= (3, 11) else 'tomli')

EXAMPLES = Path(__file__).resolve().parents[1] / 'examples'


def entry_points_of(folder):
    return tomllib.loads((folder / 'pyproject.toml').read_text())['project']['entry-points']


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return the package of the page (see test_documentation) as if pip had installed it."""
    folder = shutil.copytree(EXAMPLES / 'my_bench', tmp_path / 'my_bench')
    groups = {
        group: [f'{name} = {value}' for name, value in points.items()]
        for group, points in entry_points_of(folder).items()
    }
    install_distribution(folder, monkeypatch, groups)
    yield folder
    for name in [name for name in sys.modules if name.split('.')[0] == 'my_bench']:
        del sys.modules[name]


def points_map(**options):
    mapper = make_mapper('points', label_set=LABELS, options=options)
    return map_frames(mapper, frames(count=2, size=(40, 30)))


def test_each_line_of_the_page_registers_what_its_file_holds(package):
    assert len(entry_points_of(package)) == 4
    for group, points in entry_points_of(package).items():
        assert set(points) < set(extension_names(group))
        for value in points.values():
            assert (package / f'{value.split(":")[0].replace(".", "/")}.py').is_file()


def test_it_is_installed_again_after_a_run(package, monkeypatch):
    (package / 'runs').mkdir()
    monkeypatch.chdir(package)
    built = setuptools.Distribution()
    built.parse_config_files()
    built.set_defaults()
    assert built.packages == ['my_bench']


@pytest.mark.usefixtures('package')
def test_the_mapper_keeps_every_so_many_th_point():
    some, all_points = points_map(step=10), points_map(step=1)
    assert some.header.provenance.frames_used == 2
    assert len(all_points.dense.points) == pytest.approx(10 * len(some.dense.points), abs=20)
    with pytest.raises(ConfigError, match='mapper "points".*unknown key "steps"'):
        points_map(steps=1)


@pytest.mark.usefixtures('package')
def test_the_suite_compares_heights():
    suite = make_suite('map_height', {'share': 1.0})
    semantic_map = points_map(step=1)
    low, high = semantic_map.dense.points, semantic_map.dense.points + np.float32([0, 0, 0.25])

    def context(mapped):
        return SimpleNamespace(
            matches=SimpleNamespace(predicted=mapped),
            ground_truth=SimpleNamespace(surface=SimpleNamespace(points=low)),
        )

    [found] = suite.evaluate(context(SimpleNamespace(points=high)))
    assert found.value == pytest.approx(0.25, abs=1e-5)
    [absent] = suite.evaluate(context(None))
    assert not absent.applicable
    with pytest.raises(ConfigError, match='suite "map_height": share'):
        make_suite('map_height', {'share': 2.0})


@pytest.fixture
def context():
    """Return the map of an oracle in the room of boxes, of which the shelf is the highest."""
    views = frames()
    semantic_map = map_frames(make_mapper('oracle', label_set=LABELS), views)
    return SuiteContext('room', semantic_map, ground_truth(views), device='cpu')


@pytest.mark.usefixtures('package')
def test_the_protocol_asks_a_map_which_object_is_the_highest(context):
    suite = make_suite('highest')
    [asked] = [item for item in suite.list_questions(context) if item.category == 'Comparison']
    assert (asked.answer, parsed(asked.text).kind.value) == ('shelf', 'which is highest')
    found = {(item.metric, item.class_name): item for item in suite.evaluate(context)}
    for metric in ('accuracy', 'ceiling_ground_truth'):
        assert (found[metric, ''].value, found[metric, 'Comparison'].n) == (1.0, 1)
    assert found['baseline_always_yes', ''].value == 0.0
    # The highest is no longer clear where two objects are of one height.
    graph = context.ground_truth.graph
    shelf = next(node for node in graph.nodes if node.label == 'shelf')
    twin = replace(shelf, id=99, labels=(ScoredLabel('sofa', 1.0),))
    truth = replace(
        context.ground_truth,
        graph=replace(graph, nodes=(*graph.nodes, twin)),
        seen_instances=(*context.ground_truth.seen_instances, 99),
    )
    unclear = suite.list_questions(replace(context, ground_truth=truth))
    assert {item.category for item in unclear} == {'Measurement'}


@pytest.mark.usefixtures('package')
def test_the_published_file_of_the_protocol_is_scored_by_its_name(tmp_path):
    file = tmp_path / 'answers.jsonl'
    said = [('Which is it?', 'shelf', 'Shelf '), ('How many?', '2', '2'), ('How far?', '1', '3')]
    rows = [json.dumps(dict(zip(('question', 'right', 'said'), row, strict=True))) for row in said]
    file.write_text('\n'.join(rows))
    found = json.loads(osmabench('score', 'highest', file, '--format', 'json').output)
    assert [(row['mode'], row['kind'], row['answers']) for row in found] == [
        (mode, kind, count)
        for mode in ('compat', 'strict')
        for kind, count in (('all', 3), ('Which', 1), ('How', 2))
    ]
    accuracies = [row['accuracy'] for row in found]
    assert accuracies == pytest.approx([1 / 3, 0, 1 / 2, 2 / 3, 1, 1 / 2])
    file.write_text('{"question": "Which?"}')
    with pytest.raises(QuestionError, match=r'answers\.jsonl:1: right: Field required'):
        osmabench('score', 'highest', file)
    with pytest.raises(ConfigError, match='"map_height" describes no published files'):
        osmabench('score', 'map_height', file)


def test_the_effect_adds_noise_and_is_the_same_for_a_seed(package):
    condition = load_condition(str(package / 'noisy.yaml'))
    [effect] = condition.effects
    gray = np.full((CAMERA.height, CAMERA.width, 3), 128, np.uint8)
    noisy = effect.color(gray, Shot(0, 0.0, CAMERA, seed=1))
    assert noisy.std() == pytest.approx(20, rel=0.05)
    np.testing.assert_array_equal(noisy, effect.color(gray, Shot(0, 0.0, CAMERA, seed=1)))
    assert type(condition).model_validate(condition.model_dump()) == condition
    assert '"sigma":20.0' in condition.model_dump_json()
    with pytest.raises(ConfigError, match=r'effects\.0\.color_noise\.sigma.*greater than 0'):
        parse_condition('mine', {'effects': [{'kind': 'color_noise', 'sigma': 0}]}, 'mine.yaml')


@pytest.mark.usefixtures('package')
def test_the_simulator_sees_what_stands_before_the_camera():
    pytest.importorskip('open3d')
    # Over the boxes, at the wall 3 m away.
    simulator = make_simulator('ray_caster', room_scene(), CAMERA, {'far_m': 5.0})
    simulator.move_objects({})
    seen = simulator.render(camera_at(0.0, 0.0, 1.0))
    middle = CAMERA.height // 2, CAMERA.width // 2
    assert seen.depth_m[middle] == pytest.approx(3.0, abs=1e-3)
    assert (seen.instance[middle], seen.depth_m.dtype) == (2, np.float32)
    assert set(np.unique(seen.instance)) <= set(range(8))
    near = make_simulator('ray_caster', room_scene(), CAMERA, {'far_m': 2.0})
    assert np.isinf(near.render(camera_at(0.0, 0.0, 1.0)).depth_m[middle])


def test_the_configuration_names_them_all(package):
    data = yaml.safe_load((package / 'run.yaml').read_text())
    config = MatrixConfig.model_validate(data)
    assert config.simulator.name == 'ray_caster'
    assert [item.name for item in config.suites] == ['map_height', 'highest']
    assert config.mappers[0].name == 'points'
    assert config.conditions == ('noisy.yaml',)
