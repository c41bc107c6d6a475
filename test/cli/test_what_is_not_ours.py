"""No command, however it is called or cut off, loses a byte that is not of this package."""

import json
import os
from contextlib import suppress

import pytest
from cli.test_scene_import import WORLD
from support.benchmark_scripts import benchmark_script
from support.commands import commands
from support.users_files import fill, lost, snapshot
from support.world.maps import sample_map
from support.world.runs import matrix_config, small_config
from support.world.scenes import write_space3d_folder

from osmabench_ros.base import files
from osmabench_ros.base.files import claim_folder
from osmabench_ros.cli.main import app
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.maps.storage import write_map

POSES = ''.join(f'{t}.0 {t} {t * t} 0 0 0 0 1\n' for t in range(9))
RUN = 'apartment.seed_3.baseline.oracle.opengl.3'
SIDE = 'inputs'

# Commands that write a folder; OUT is the folder of the user's.
FOLDERS = {
    'run': 'run IN/small.yaml --out OUT/.. --fresh',
    'run (on)': 'run IN/small.yaml --out OUT/..',
    'demo': 'demo --out OUT/.. --fresh',
    'run (speeds)': 'run IN/small.yaml --speeds auto --out OUT/.. --fresh',
    'map evaluate': 'map evaluate IN/map --ground-truth IN/map --out OUT --force',
    'bag evaluate': 'bag evaluate IN/bag --out OUT --force',
    'scene generate': 'scene generate IN/small.yaml --out OUT --ground-truth',
    'scene ground-truth': 'scene ground-truth IN/small.yaml --out OUT',
    'bag record': 'bag record --out OUT --duration 1',
    'scene import': 'scene import IN/a.world --out OUT --overwrite',
    'scene export': 'scene export apartment --out OUT --overwrite',
    'map import': 'map import pointcloud IN/map/cloud.ply --out OUT',
    'map label': 'map label IN/map --label-set IN/map/map.json --out OUT',
    'map export': 'map export ply IN/map --out OUT',
    'report': 'report IN/runs --out OUT',
    'export': 'export IN/runs --to OUT',
    'compare': 'compare IN/runs IN/runs --out OUT',
    'score trajectory': 'score trajectory IN/a.tum IN/a.tum --out OUT',
    'score space3d': 'score space3d IN/rooms --out OUT/..',
    'scene prompts': 'scene prompts furniture --model offline:m --out OUT',
    'scene specify': 'scene specify IN/prompts.json --model offline:m --out OUT',
    'scene questions': 'scene questions IN --out OUT',
    'vqa generate': f'vqa generate OUT/../{RUN} --folder ../OUTNAME',
    'vqa answer': f'vqa answer OUT/../{RUN} --folder ../OUTNAME',
    'vqa judge': f'vqa judge OUT/../{RUN} --folder ../OUTNAME',
    'vqa report': f'vqa report OUT/../{RUN} --folder ../OUTNAME',
}
NAMED = {
    'run': 'small', 'run (on)': 'small', 'demo': 'demo', 'run (speeds)': 'small_sweep',
    'score space3d': 'rooms',
}  # fmt: skip
SCRIPT = 'learn_prototypes'
FILES = {
    'conditions preview': 'conditions preview -o OUT',
    'scene check': 'scene check apartment -o OUT',
    SCRIPT: f'{SCRIPT} OUT --apartments 1',
    'map view': 'map view IN/map --rerun OUT',
}
READERS = {
    'conditions list', 'map check', 'map info', 'map methods', 'bag replay', 'score answers',
    'score confusion', 'score cospace', 'score grounding', 'score hypo3d',
    'score promptgt', 'status', 'vqa judge-check',
}  # fmt: skip
# Those that only look whether there is room at --out.
LOOKERS = {'doctor'}
OUTPUTS = {'out', 'output', 'rerun', 'folder', 'fresh', 'overwrite'}


def test_every_command_is_in_the_table():
    known = {name.partition(' (')[0] for name in (*FOLDERS, *FILES)} - {SCRIPT}
    found = commands()
    assert found.keys() == known | READERS | LOOKERS
    for name in READERS:
        assert not OUTPUTS & {parameter.name for parameter in found[name].params}


@pytest.fixture
def inputs(tmp_path):
    """Return a folder of what commands read."""
    folder = tmp_path / SIDE
    folder.mkdir()
    (folder / 'small.yaml').write_text(json.dumps(small_config()))
    (folder / 'prompts.json').write_text('{"room": "A room with 1 bed."}')
    (folder / 'a.world').write_text(WORLD)
    (folder / 'a.tum').write_text(POSES)
    write_space3d_folder(folder / 'rooms')
    write_map(sample_map(), folder / 'map')
    config = matrix_config(**small_config()).model_dump(mode='json')
    files.write_json(folder / 'runs' / 'manifest.json', {'config': config})
    return folder


def osmabench(template, inputs, out):
    """Run a command in this process; fail as it does."""
    # The parent is named as it is, not by the target of a link.
    text = template.replace('OUT/..', str(out.parent)).replace('OUTNAME', out.name)
    words = text.replace('OUT', str(out)).replace('IN/', f'{inputs}/').split()
    command = app
    if words[0] == SCRIPT:
        command = benchmark_script(words.pop(0)).app
    code = command(words, standalone_mode=False)
    if code:
        raise SystemExit(code)


def direct(folder):
    return folder


def linked(folder):
    real = folder.rename(folder.with_name('real'))
    folder.symlink_to(real)
    return real


def dangling(folder):
    real = folder.rename(folder.with_name('real'))
    folder.symlink_to(real / 'missing')
    return real


def without_folder(folder):
    real = folder.rename(folder.with_name('real'))
    folder.write_text('mine')
    return real


PLACES = [
    *((name, direct) for name in FOLDERS),
    ('run', linked),
    ('demo', without_folder),
    ('bag record', dangling),
    ('report', linked),
    ('bag evaluate', without_folder),
    ('map import', dangling),
]


@pytest.mark.parametrize(('name', 'place'), PLACES)
def test_a_folder_that_is_not_ours_is_refused_and_untouched(name, place, inputs, tmp_path):
    out = tmp_path / 'there' / NAMED.get(name, 'users')
    fill(out, tmp_path / 'elsewhere')
    (out / 'manifest.json').write_text('{"config_sha256": "0"}')
    (out / 'report.json').write_text('{"schema_name": "osmabench.bag_report/1"}')
    place(out)
    before = snapshot(tmp_path)
    with pytest.raises((OsmabenchError, SystemExit)) as caught:
        osmabench(FOLDERS[name], inputs, out)
    if not name.startswith('vqa'):  # those miss the run first
        assert str(out) in str(caught.value)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ('name', 'target', 'option'),
    [
        ('conditions preview', 'notes.txt', ''),
        ('conditions preview', 'diary', ' --overwrite'),
        ('scene check', 'nowhere', ''),
        ('scene check', 'photos', ' --overwrite'),
        (SCRIPT, 'diary', ''),
        (SCRIPT, 'src', ' --overwrite'),
        ('map view', 'notes.txt', ''),
        ('map view', 'nowhere', ' --overwrite'),
    ],
)
def test_a_file_that_is_not_ours_is_refused_and_untouched(name, target, option, inputs, tmp_path):
    out = tmp_path / 'there' / 'users'
    fill(out, tmp_path / 'elsewhere')
    before = snapshot(tmp_path)
    with pytest.raises(OsmabenchError, match='choose another'):
        osmabench(FILES[name] + option, inputs, out / target)
    assert snapshot(tmp_path) == before


@pytest.mark.filterwarnings('ignore::osmabench_ros.errors.OsmabenchWarning')
@pytest.mark.parametrize(
    ('name', 'moment'),
    [('scene import', 0), ('scene import', 1), ('map export', None), ('score trajectory', 1)],
)
def test_files_put_into_results_outlive_the_command_that_is_cut_off_and_repeated(
    name, moment, inputs, tmp_path, monkeypatch
):
    out = tmp_path / 'there' / 'users'
    osmabench(FOLDERS[name], inputs, out)
    made = {*snapshot(out)}
    fill(out, tmp_path / 'elsewhere')
    before = {path: was for path, was in snapshot(tmp_path).items() if path not in made}
    calls, original = iter(range(1000)), os.replace

    def strike(source, target):
        if next(calls) == moment:
            raise KeyboardInterrupt
        original(source, target)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(files.os, 'replace', strike)
        with suppress(SystemExit, OsmabenchError):
            osmabench(FOLDERS[name], inputs, out)
    assert lost(before, tmp_path) == []
    with suppress(OsmabenchError):
        osmabench(FOLDERS[name], inputs, out)
    assert lost(before, tmp_path) == []


def test_results_with_a_link_where_one_was_written_are_refused(inputs, tmp_path):
    out = tmp_path / 'there' / 'small'
    fill(tmp_path / 'mine', tmp_path / 'elsewhere')
    claim_folder(out)
    (out / 'shared').symlink_to(tmp_path / 'mine')
    before = {**snapshot(tmp_path / 'mine', tmp_path / 'elsewhere')}
    with pytest.raises(OsmabenchError, match='shared is a link'):
        osmabench(FOLDERS['run (on)'], inputs, out)
    assert snapshot(tmp_path / 'mine', tmp_path / 'elsewhere') == before
