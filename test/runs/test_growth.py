"""Changes of a configuration that a matrix goes on with, and changes that it refuses."""

import json

import pytest
from support.world.runs import matrix_config, plans_of

from osmabench_ros.base.files import (
    MARKER,
    PREVIOUS,
    claim_folder,
    make_folder,
    read_json,
    write_json,
)
from osmabench_ros.errors import OsmabenchWarning, RunError
from osmabench_ros.runs import host
from osmabench_ros.runs import run_manifest as module
from osmabench_ros.runs.matrix_on_disk import claim
from osmabench_ros.runs.run_manifest import (
    MANIFEST,
    Difference,
    ExtraWork,
    describe_shared,
    find_extra_work,
    write_run_manifest,
)

OPTIONS = {'count': 20, 'answerer': 'rule'}
SUITES = [{'name': 'map_geometry'}, {'name': 'exact_questions', 'options': OPTIONS}]
COVERAGE = {'suite': 'map_geometry', 'metric': 'coverage', 'at_least': 0.5}


@pytest.fixture(autouse=True)
def _no_renderer(monkeypatch):
    monkeypatch.setattr(host, 'renderer', lambda name: f'renderer of {name}')


@pytest.fixture
def files(tmp_path):
    """A folder with a condition and a mapper."""
    (tmp_path / 'dusk.yaml').write_text('lighting: {exposure: 0.5}')
    (tmp_path / 'mine.py').write_text('1')
    (tmp_path / 'text.npy').write_text('1')
    return tmp_path


def config(files, **changes):
    command = ['python3', str(files / 'mine.py')]
    given = {
        'conditions': ['baseline', str(files / 'dusk.yaml')],
        'mappers': [{'name': 'oracle'}, {'name': 'mine', 'command': command}],
        'suites': SUITES,
    }
    return matrix_config(**{**given, **changes})


def planned(files, **changes):
    return plans_of(config(files, **changes), files / 'runs')


def digest_of(_plan):
    return 64 * '1'


@pytest.fixture
def done(files):
    """The four runs of a matrix, with maps."""
    claim_folder(files / 'runs')
    for plan in planned(files):
        make_folder(plan.shared_directory)
        write_json(plan.shared_directory / MANIFEST, describe_shared(plan, digest_of(plan)))
        write_run_manifest(plan, digest_of(plan))
        plan.map_directory.mkdir()
    return files


def reasons(extra):
    return {tuple(map(str, found)) for _, found in extra.runs}


@pytest.mark.parametrize(
    'more',
    [
        {},
        {'conditions': ['baseline', 'camera']},
        {'mappers': [{'name': 'oracle', 'resources': {'cpus': 2}}, {'name': 'appearance'}]},
        {'scenes': [{'reference': 'apartment'}, {'reference': 'apartment', 'seed': 7}]},
        {'pacing': {'mode': 'realtime'}},
        {'sweep': {'speeds': [1]}, 'name': 'other'},
    ],
)
def test_more_runs_leave_those_that_are_done(done, more):
    assert find_extra_work(planned(done, **more), digest_of) == ExtraWork()


@pytest.mark.parametrize(
    ('more', 'reason'),
    [
        ({'suites': [*SUITES, {'name': 'instances'}]}, 'suites.instances: absent -> {}'),
        ({'requirements': [COVERAGE]}, 'requirements: [] -> [{'),
        ({'text_features': {'clip': 'text.npy'}}, 'text features of clip: text.npy: absent -> '),
    ],
)
def test_more_scores_keep_the_maps(done, more, reason, monkeypatch):
    monkeypatch.chdir(done)
    extra = find_extra_work(planned(done, **more), digest_of)
    assert (len(extra.runs), extra.scenes) == (4, ())
    [[found]] = reasons(extra)
    assert found.startswith(reason)


def test_a_suite_with_questions_of_its_own_adds_them_to_the_scene(done):
    extra = find_extra_work(planned(done, suites=[*SUITES, {'name': 'cospace'}]), digest_of)
    assert [plan.shared_directory.name for plan in extra.scenes] == ['d.s.0']
    assert len(extra.runs) == 4


FEWER_QUESTIONS = [{'name': 'map_geometry'}, {'name': 'exact_questions', 'options': {'count': 5}}]
COARSE = [{'name': 'oracle', 'options': {'voxel_m': 0.1}}]
QUESTIONS = 'suites.exact_questions: {"answerer": "rule", "count": 20}'
OF_SETTINGS = [
    ({'camera': {'width': 320}}, 'camera.width: 640 -> 320'),
    ({'trajectory': {'goals': 2}}, 'trajectory.goals: 5 -> 2'),
    ({'evaluation': {'map_every_frames': 3}}, 'evaluation.map_every_frames: 0 -> 3'),
    ({'mappers': COARSE}, 'mapper.options.voxel_m: absent -> 0.1'),
    ({'suites': SUITES[:1]}, f'{QUESTIONS} -> absent'),
    ({'suites': FEWER_QUESTIONS}, f'{QUESTIONS} -> {{"count": 5}}'),
]


def test_of_long_options_the_part_that_differs_is_shown():
    before, now = (
        json.dumps({'answerer': 'openai:some-model', 'base_url': f'http://127.0.0.1:{port}/v1'})
        for port in (8702, 8701)
    )
    before, now = str(Difference('suites.s', before, now)).split(' -> ')
    assert before.startswith('suites.s: …')
    assert 'http://127.0.0.1:8702/v1' in before
    assert 'http://127.0.0.1:8701/v1' in now


def test_the_address_of_a_server_may_be_corrected(done):
    def ask(port):
        options = {'answerer': 'openai:m', 'base_url': f'http://127.0.0.1:{port}/v1'}
        return [{'name': 'exact_questions', 'options': options}]

    for plan in planned(done, suites=ask(8702)):
        write_run_manifest(plan, digest_of(plan))
    assert find_extra_work(planned(done, suites=ask(8701)), digest_of) == ExtraWork((), ())


@pytest.mark.parametrize(('changes', 'named'), OF_SETTINGS)
def test_another_setting_is_refused_by_its_key(done, changes, named):
    with pytest.raises(RunError) as caught:
        find_extra_work(planned(done, **changes), digest_of)
    assert f'were made with other settings: {named}. Start over with --fresh' in str(caught.value)


@pytest.mark.parametrize(
    ('file', 'text', 'named'),
    [
        ('dusk.yaml', 'lighting: {exposure: 2}', 'condition.lighting.exposure: 0.5 -> 2'),
        ('mine.py', '2', r'mapper mine: \S*mine.py: 6b86b273 -> d4735e'),
    ],
)
def test_other_inputs_are_refused_by_name(done, file, text, named):
    (done / file).write_text(text)
    with pytest.raises(RunError, match=named):
        find_extra_work(planned(done), digest_of)


def test_another_scene_and_another_version_are_refused(done, monkeypatch):
    monkeypatch.setattr(module, 'version', lambda: '99')
    with pytest.raises(RunError) as caught:
        find_extra_work(planned(done), lambda _plan: 64 * '2')
    assert 'd.s.0 and 4 more were made with other settings' in str(caught.value)
    assert 'scene d.s.0: 11111111 -> 22222222; version of osmabench_ros: ' in str(caught.value)


def test_another_version_of_exact_questions_is_refused(done, monkeypatch):
    monkeypatch.setattr(module, 'GENERATOR', 'exact/99')
    with pytest.raises(
        RunError, match=r'version of exact_questions: exact/\d+ -> exact/99\. Start'
    ):
        find_extra_work(planned(done), digest_of)


def test_of_many_differences_the_first_are_named(done):
    camera = {'width': 64, 'height': 48, 'hfov_deg': 80, 'near_m': 0.1, 'far_m': 20}
    plans = planned(done, camera=camera, robot={'radius_m': 0.1})
    with pytest.raises(RunError, match=r'camera.far_m: 50.0 -> 20.0; .*; and 1 more\. Start'):
        find_extra_work(plans, digest_of)


def test_a_run_without_results_may_be_of_anything(done):
    for plan in planned(done):
        plan.map_directory.rmdir()
    assert find_extra_work(planned(done, mappers=COARSE), digest_of) == ExtraWork()


def test_results_that_do_not_say_what_they_come_from_are_refused(done):
    (done / 'runs' / 'shared' / 'd.s.0' / MANIFEST).unlink()
    with pytest.raises(RunError, match='an earlier version did not note them.*--fresh'):
        find_extra_work(planned(done), digest_of)


def test_fresh_moves_all_aside(files):
    root = files / 'own'
    settings, plans = config(files), planned(files)[:1]
    claim(root, settings, plans, digest_of)
    assert read_json(root / MANIFEST)['scenes'][0]['scene'] == 's'
    write_json(root / 'run' / 'report.json', {})
    (root / 'notes.txt').write_text('mine')
    with pytest.warns(OsmabenchWarning, match='earlier results .* were moved to .*/previous/'):
        claim(root, settings, plans, digest_of, fresh=True)
    assert sorted(item.name for item in root.iterdir()) == [MARKER, MANIFEST, PREVIOUS]
    [aside] = (root / PREVIOUS).glob('2*')
    found = {str(item.relative_to(aside)) for item in aside.rglob('*') if item.is_file()}
    assert found == {MARKER, MANIFEST, 'notes.txt', 'run/report.json', f'run/{MARKER}'}
