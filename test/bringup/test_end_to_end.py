"""The whole way with real processes over DDS: configuration in, scored report out."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from support import scripted_model
from support.loopback_models import LoopbackModels, Misstep
from support.world.runs import foreign, repeatable, run_small, small_config

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

CONFIG = small_config(
    conditions=['baseline', 'velocity'],
    camera={'width': 160, 'height': 120},
    trajectory={'goals': 2, 'frame_rate_hz': 1.0, 'max_frames': 9},
    suites=[{'name': 'osma_segmentation'}, {'name': 'map_geometry'}, {'name': 'exact_questions'}],
    requirements=[
        {'suite': 'osma_segmentation', 'mode': 'strict', 'metric': 'accuracy', 'at_least': 0.9}
    ],
)


def run(out, config=CONFIG, nodes=None, **options):
    return run_small(config, out, nodes=nodes, **options)


@pytest.fixture(scope='module')
def first(nodes, tmp_path_factory):
    out = tmp_path_factory.mktemp('first')
    return out / 'small', run(out, nodes=nodes, jobs=2)


def test_a_matrix_ends_in_a_passed_report(first):
    root, report = first
    assert report.passed, report
    assert [item.status.value for item in report.runs] == ['complete', 'complete']
    written = json.loads((root / 'report.json').read_text())
    assert written['passed'] is True
    page = (root / 'report.html').read_text()
    assert all(item.run_id in page for item in report.runs)
    keys = {'run_id', 'dataset', 'scene', 'condition', 'mapper', 'simulator', 'seed', 'suite'}
    assert keys <= written['runs'][0]['metrics'][0].keys()


def test_twice_the_speed_sees_the_same_path_in_half_the_frames(first):
    root, _ = first
    frames = {
        path.parent.name.split('.')[2]: json.loads(path.read_text())['frames']
        for path in root.glob('*/timings.json')
    }
    assert frames == {'baseline': 9, 'velocity': 5}
    assert len(list((root / 'shared').glob('[!.]*'))) == 1


@pytest.mark.full
def test_side_by_side_the_same_seed_gives_the_same_bytes(first, tmp_path):
    root, _ = first
    run(tmp_path)
    again = repeatable(tmp_path / 'small')
    expected = repeatable(root)
    assert again.keys() == expected.keys()
    assert [name for name in expected if expected[name] != again[name]] == []
    assert any(name.endswith('map/map.json') for name in expected)


@pytest.mark.full
def test_a_run_that_was_cut_off_while_evaluating_resumes_from_its_map(first, tmp_path):
    root, _ = first
    copy = tmp_path / 'small'
    shutil.copytree(root, copy)
    [run_report, *_] = sorted(copy.glob('*baseline*/report.json'))
    expected = run_report.read_bytes()
    run_report.unlink()
    (copy / 'report.json').unlink()
    map_time = (run_report.parent / 'map' / 'map.json').stat().st_mtime_ns
    report = run(tmp_path)
    assert report.passed
    assert run_report.read_bytes() == expected
    assert (run_report.parent / 'map' / 'map.json').stat().st_mtime_ns == map_time
    assert (copy / 'report.json').read_bytes() == (root / 'report.json').read_bytes()


@pytest.mark.full
def test_a_run_that_was_copied_from_another_machine_counts_as_done(
    first, prepared, nodes, tmp_path
):
    root, _ = first
    part = {**CONFIG, 'conditions': ['velocity']}
    assert run(tmp_path / 'job', part, nodes, prepared=prepared).passed
    whole = Path(shutil.copytree(root, tmp_path / 'small'))
    for path in whole.glob('report*'):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    [gone] = whole.glob('*.velocity.*')
    shutil.rmtree(gone)
    shutil.copytree(tmp_path / 'job' / 'small' / gone.name, gone)
    times_ns = {path: path.stat().st_mtime_ns for path in whole.glob('*/map/map.json')}
    assert run(tmp_path, nodes=nodes).passed
    assert {path: path.stat().st_mtime_ns for path in times_ns} == times_ns
    assert len(times_ns) == 2
    assert (whole / 'report.json').read_bytes() == (root / 'report.json').read_bytes()


def test_results_of_another_configuration_are_not_mixed_in(first):
    from osmabench_ros.errors import RunError
    from osmabench_ros.runs.config import parse_config
    from osmabench_ros.runs.preparation import list_expected_work

    other = {**CONFIG, 'suites': CONFIG['suites'][:2]}
    named = r'other settings: suites.exact_questions: {} -> absent\. Start over'
    with pytest.raises(RunError, match=named):
        run(first[0].parent, other)
    with pytest.raises(RunError, match=named):
        list_expected_work(parse_config(other, 'test'), first[0].parent)


@pytest.mark.full
def test_realtime_maps_with_a_foreign_node(prepared, nodes, tmp_path):
    config = small_config(
        mappers=[foreign('none', acks=True)],
        pacing={'mode': 'realtime', 'speed_factor': 0.5},
        requirements=[{'suite': 'map_geometry', 'metric': 'accuracy_m', 'at_most': 0.05}],
    )
    report = run(tmp_path, config, nodes, prepared=prepared)
    assert report.passed, report
    assert {item.speed_factor for item in report.metrics} == {0.5}
    [file] = (tmp_path / 'small').glob('*.x0-5/timings.json')
    timings = json.loads(file.read_text())
    assert timings['frames'] == 5
    # Half speed was asked; a busy machine may fall behind.
    assert 0.2 < timings['speed_factor'] < 0.8
    ends = {item['name']: item for item in timings['participants']}
    for item in (ends['mapper'], ends['map_recorder']):
        assert (item['published'], item['received'], item['loss']) == (5, 5, 0.0)
    assert timings['staleness']['max_s'] == 4.0


@pytest.mark.parametrize('page', ['README.md', 'docs/mappers.md'])
def test_the_mapper_of_a_page_takes_part(prepared, nodes, tmp_path, page):
    text = (Path(__file__).resolve().parents[2] / page).read_text()
    script = tmp_path / 'my_mapper.py'
    script.write_text(text.split('```python\n')[1].split('```')[0])
    config = small_config(
        mappers=[{'name': 'mine', 'command': [sys.executable, str(script)]}],
        requirements=[{'suite': 'map_geometry', 'metric': 'accuracy_m', 'at_most': 0.05}],
    )
    report = run(tmp_path, config, nodes, prepared=prepared)
    assert report.passed, report
    from osmabench_ros.maps.storage import read_map

    made = read_map(next((tmp_path / 'small').glob('*/map')))
    if page != 'README.md':
        assert made.label_set is not None, 'the participant adds the classes of the run'
        assert [node.label for node in made.graph.nodes] == ['chair']


@pytest.mark.full
def test_a_server_that_fails_makes_a_run_incomplete_and_the_next_run_goes_on_there(
    prepared, tmp_path, monkeypatch
):
    from osmabench_ros.errors import RunError

    monkeypatch.setenv('OPENAI_API_KEY', 'sk-of-the-test')
    with LoopbackModels(reply=scripted_model.reply, always=Misstep('status', 401)) as server:
        options = {'answerer': 'openai:m', 'base_url': server.url, 'cache': str(tmp_path / 'kept')}
        config = small_config(
            suites=[{'name': 'map_geometry'}, {'name': 'exact_questions', 'options': options}]
        )
        report = run(tmp_path, config, prepared=prepared)
        assert not report.passed
        assert [item.status.value for item in report.runs] == ['incomplete']
        assert {item.suite for item in report.metrics} == {'map_geometry'}
        with pytest.raises(RunError, match='unanswered: 401 Unauthorized from http://127'):
            report.check_verdict()
        page = (tmp_path / 'small' / 'report.html').read_text()
        assert 'unanswered: 401 Unauthorized' in page
        [map_file] = (tmp_path / 'small').glob('*/map/map.json')
        recorded = map_file.stat().st_mtime_ns
        server.always = None
        again = run(tmp_path, config)
    assert again.passed, again
    assert {item.suite for item in again.metrics} == {'map_geometry', 'exact_questions'}
    assert map_file.stat().st_mtime_ns == recorded
    assert not list((tmp_path / 'small').glob('*/incomplete.json'))
