import importlib.metadata
import json
import platform
import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from support.world.runs import matrix_config, plans_of

from osmabench_ros.base.files import read_json, sha256_of
from osmabench_ros.errors import RunError
from osmabench_ros.runs import host
from osmabench_ros.runs.host import SOURCES, commit_of, host_facts, renderer
from osmabench_ros.runs.run_manifest import describe_run, read_warnings, write_run_manifest


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home, and no renderer, which another test looks at."""
    monkeypatch.setenv('HOME', str(tmp_path))
    monkeypatch.setattr(host, 'renderer', lambda name: f'renderer of {name}')
    return tmp_path


@pytest.fixture
def plan(home):
    script = home / 'my_mapper.py'
    script.write_text('import rclpy')
    config = matrix_config(
        conditions=['camera', 'baseline'],
        mappers=[{'name': 'mine', 'command': ['python3', str(script)]}],
        requirements=[
            {'suite': 'map_geometry', 'metric': 'coverage', 'condition': name, 'at_least': 0.5}
            for name in ('camera', 'baseline')
        ],
    )
    plan = plans_of(config, home / 'runs')[0]
    for name in ('path.json', 'ground_truth/points.npy', 'questions.jsonl'):
        file = plan.shared_directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return plan


def test_it_tells_what_a_run_was_made_from(plan, home):
    write_run_manifest(plan, 'scene digest')
    found = read_json(plan.directory / 'manifest.json')
    assert found['run_id'] == plan.identity.run_id
    assert found['config']['condition']['name'] == 'camera'
    assert [item['condition'] for item in found['config']['requirements']] == ['camera']
    assert found['inputs'].keys() == {
        'scene d.s.0',
        'mapper mine: ~/my_mapper.py',
        'shared ground_truth',
        'shared path.json',
        'shared questions.jsonl',
    }
    assert found['inputs']['scene d.s.0'] == 'scene digest'
    path = plan.shared_directory / 'path.json'
    assert found['inputs']['shared path.json'] == sha256_of(path)
    assert found['versions']['python'] == platform.python_version()
    assert re.match(r'\d+\.\d+', found['versions']['numpy'])
    # Its wheels are called open3d, open3d-cpu or otherwise.
    for name in importlib.metadata.packages_distributions().get('open3d', ()):
        assert found['versions']['open3d'] == importlib.metadata.version(name)
    assert found['renderer'] == 'renderer of opengl'
    assert str(home) not in json.dumps(found)
    assert found['config']['mapper']['command'][1] == '~/my_mapper.py'


def test_it_changes_with_its_inputs_and_with_nothing_else(plan):
    before = describe_run(plan, 'x')
    assert describe_run(plan, 'x') == before
    (plan.shared_directory / 'questions.jsonl').write_text('other')
    after = describe_run(plan, 'x')
    assert {key for key in before if before[key] != after[key]} == {'inputs'}


def test_warnings_are_kept_and_collected_once(plan, home):
    two = replace(plan, root=home / 'other')
    assert read_warnings([plan]) == ()
    write_run_manifest(plan, 'x', ['dark', 'short'])
    shutil.copytree(plan.root, two.root)
    assert read_warnings([plan, two]) == ('dark', 'short')


def test_a_manifest_that_is_a_list_is_named(plan):
    write_run_manifest(plan, '')
    (plan.directory / 'manifest.json').write_text('[]')
    with pytest.raises(RunError, match=r'manifest\.json is malformed: '):
        read_warnings([plan])


def test_the_commit_of_the_sources_is_recorded(tmp_path):
    assert (SOURCES / 'osmabench_ros' / 'runs' / 'host.py').samefile(host.__file__)
    assert commit_of(tmp_path) == ''
    git = shutil.which('git')
    if git is None:
        pytest.skip('there is no git here')

    def call(*words):
        person = ('-c', 'user.name=a', '-c', 'user.email=a@b.c')
        words = (git, '-C', str(tmp_path / 'tree'), *person, *words)
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    (tmp_path / 'tree').mkdir()
    call('init')
    (tmp_path / 'tree' / 'a').write_text('1')
    call('add', 'a')
    call('commit', '--message', 'a')
    assert commit_of(tmp_path / 'tree') == call('rev-parse', 'HEAD')
    (tmp_path / 'tree' / 'a').write_text('2')
    commit_of.cache_clear()
    assert commit_of(tmp_path / 'tree') == f'{call("rev-parse", "HEAD")}, changed since'


def test_it_knows_the_machine():
    found = host_facts()
    assert found['memory_bytes'] > 2**28
    assert found['threads'] >= found['cores'] >= 1
    assert found['cpu']
    assert found['os']


@pytest.mark.gl
def test_it_names_the_renderer():
    assert re.search(r'OpenGL \d\.\d', renderer('opengl'))
    assert 'holodeck' in renderer('holodeck')
