"""A map and ground truth on disk become a report, without ROS."""

import json

import pytest
import yaml
from support.commands import osmabench
from support.figures import figure_of
from support.programs import run_python
from support.world.maps import featured_map, labelled_map, write_inputs, write_text_features
from support.world.runs import small_config

from osmabench_ros.base.files import sha256_of
from osmabench_ros.errors import ConfigError, MapError, RequirementError, RunError, SequenceError
from osmabench_ros.runs.report_model import RunReport

AXES = {'chair': [1.0, 0, 0], 'floor': [0, 1.0, 0], 'table': [0, 0, 1.0]}


def evaluate(folders, out, *options):
    words = ['map', 'evaluate', folders[0], '--ground-truth', folders[1], '--out', out, *options]
    return osmabench(*words, '--device', 'cpu')


def report_of(out):
    return RunReport.model_validate_json((out / 'report.json').read_text())


def value_of(out, metric, mode):
    return figure_of(report_of(out).metrics, metric, mode=mode)


@pytest.fixture
def folders(tmp_path):
    return write_inputs(tmp_path, labelled_map())


def test_a_faultless_map_gets_full_marks_and_its_name(folders, tmp_path):
    out = tmp_path / 'out'
    result = evaluate(folders, out, '--suite', 'osma_segmentation', '--seed', 4)
    assert value_of(out, 'macc', 'strict') == value_of(out, 'miou', 'compat') == 1.0
    report = report_of(out)
    assert report.run_id == 'test.room.baseline.faultless.unknown.4'
    assert {record.suite for record in report.metrics} == {'osma_segmentation'}
    row = next(line for line in result.output.splitlines() if ' strict' in line)
    assert row.split()[:4] == ['osma_segmentation', 'strict', 'macc', '1']
    assert result.output.splitlines()[-2:] == [str(out / 'report.json'), str(out / 'report.html')]
    page = (out / 'report.html').read_text(encoding='utf-8')
    assert '<h1>faultless</h1>' in page
    for item in report.metrics:
        assert f'<th scope="row">{item.class_name or item.metric}</th>' in page


def test_the_same_call_gives_the_same_bytes(folders, tmp_path):
    for name in ('one', 'two'):
        evaluate(folders, tmp_path / name)
    one, two = ((tmp_path / name / 'report.json').read_bytes() for name in ('one', 'two'))
    assert one == two
    suites = {record.suite for record in report_of(tmp_path / 'one').metrics}
    assert suites == {'osma_segmentation', 'map_geometry', 'exact_questions'}


def test_a_report_is_replaced_only_by_force(folders, tmp_path):
    out = tmp_path / 'out'
    evaluate(folders, out, '--suite', 'map_geometry')
    first = (out / 'report.json').read_bytes()
    with pytest.raises(RunError, match=r'report\.json exists; use --force'):
        evaluate(folders, out, '--suite', 'osma_segmentation')
    assert (out / 'report.json').read_bytes() == first
    evaluate(folders, out, '--suite', 'osma_segmentation', '--force')
    assert {record.suite for record in report_of(out).metrics} == {'osma_segmentation'}


def write_config(path, **parts):
    suites = [{'name': 'osma_segmentation', 'options': {'modes': ['strict']}}]
    path.write_text(yaml.safe_dump(small_config(suites=suites, **parts)))
    return path


def test_suites_and_requirements_come_from_the_configuration(folders, tmp_path):
    limit = {'suite': 'osma_segmentation', 'metric': 'hallucinated', 'at_least': 0.5}
    config = write_config(tmp_path / 'own.yaml', requirements=[limit])
    with pytest.raises(RequirementError, match=r'hallucinated >= 0\.5: 0\.0 in test\.room'):
        evaluate(folders, tmp_path / 'out', '--config', config)
    assert {record.mode for record in report_of(tmp_path / 'out').metrics} == {'strict'}
    # Requirements of suites that are left out do not count, options of those that stay do.
    evaluate(folders, tmp_path / 'geometry', '--config', config, '--suite', 'map_geometry')
    with pytest.raises(RequirementError, match=r'hallucinated >= 0\.5: 0\.0'):
        evaluate(folders, tmp_path / 'b', '--config', config, '--suite', 'osma_segmentation')
    assert {record.mode for record in report_of(tmp_path / 'b').metrics} == {'strict'}


def test_an_open_vocabulary_map_is_labelled_by_the_text_features_given(tmp_path):
    folders = write_inputs(tmp_path, featured_map())
    file = write_text_features(tmp_path / 'toys.npy', AXES)
    config = write_config(tmp_path / 'own.yaml', text_features={'ToyCLIP/toys': str(file)})
    result = evaluate(folders, tmp_path / 'with', '--config', config)
    assert value_of(tmp_path / 'with', 'macc', 'strict') == 1.0
    hashes = report_of(tmp_path / 'with').hashes
    assert hashes['text_features:ToyCLIP/toys'] == sha256_of(file)
    encoders = report_of(tmp_path / 'with').encoders
    assert encoders['labels'] == 'ToyCLIP/toys from file toys.npy'
    assert 'text encoder, labels: ToyCLIP/toys from file toys.npy' in result.output


@pytest.mark.parametrize(
    ('break_it', 'error', 'message'),
    [
        (lambda inputs: (inputs[0] / 'map.json').unlink(), MapError, 'map.json'),
        (lambda inputs: (inputs[1] / 'surface_labels.npy').unlink(), SequenceError, 'surface_lab'),
        (lambda inputs: (inputs[1] / 'ground_truth.json').unlink(), SequenceError, 'ground_truth'),
    ],
)
def test_inputs_at_fault_are_named_and_nothing_is_written(
    break_it, error, message, folders, tmp_path
):
    break_it(folders)
    with pytest.raises(error, match=message):
        evaluate(folders, tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


def test_words_at_fault_are_named(folders, tmp_path):
    out = tmp_path / 'out'
    with pytest.raises(ConfigError, match='"osma".*osma_segmentation'):
        evaluate(folders, out, '--suite', 'osma')
    with pytest.raises(RunError, match=r'no questions at .*absent\.jsonl'):
        evaluate(folders, out, '--questions', tmp_path / 'absent.jsonl')
    config = write_config(tmp_path / 'own.yaml', text_features={'clip': 'absent.npy'})
    with pytest.raises(ConfigError, match=r'absent\.npy does not exist'):
        evaluate(folders, out, '--config', config)
    assert not out.exists()


def test_no_ros_is_loaded(folders, tmp_path):
    """Evaluate in a fresh interpreter where rclpy cannot be imported."""
    script = (
        'import sys; sys.modules["rclpy"] = None; sys.argv[0] = "osmabench"\n'
        'from osmabench_ros.cli.main import main\n'
        'main()'
    )
    words = ['map', 'evaluate', folders[0], '--ground-truth', folders[1], '--device', 'cpu']
    words += ['--out', tmp_path / 'out', '--suite', 'map_geometry']
    done = run_python('-c', script, *words)
    assert (done.returncode, done.stderr.count('Traceback')) == (0, 0), done.stderr
    assert json.loads((tmp_path / 'out' / 'report.json').read_text())['status'] == 'complete'


@pytest.mark.full
@pytest.mark.gl
def test_ground_truth_is_made_once_a_scene(tmp_path):
    conditions = ['baseline', 'camera']
    config = write_config(tmp_path / 'own.yaml', conditions=conditions)
    words = ['scene', 'ground-truth', config, '--out', tmp_path / 'out']
    result = osmabench(*words)
    folder = tmp_path / 'out' / 'shared' / 'apartment.seed_3.3' / 'ground_truth'
    assert [line for line in result.output.splitlines() if '/' in line] == [str(folder)]
    assert (folder / 'ground_truth.json').exists()
    assert (folder.parent / 'questions.jsonl').exists()
    made_ns = (folder / 'ground_truth.json').stat().st_mtime_ns
    osmabench(*words)
    assert (folder / 'ground_truth.json').stat().st_mtime_ns == made_ns
    write_config(config, conditions=conditions, camera={'width': 40, 'height': 48})
    with pytest.raises(RunError, match='camera.width: 64 -> 40'):
        osmabench(*words)
