import csv
import io
import json
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.commands import output_of
from support.published_data import SEGMENTATION

from osmabench_ros.errors import MapError, MetricError, UnsafePickleError
from osmabench_ros.metrics.confusion import ConfusionMatrix, read_confusions, write_confusions

score = partial(output_of, 'score', 'confusion')


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


MATRIX = ConfusionMatrix(np.array([[6, 2, 0], [1, 3, 0], [0, 0, 0]]), np.array([4, 7, -1]))


def write_pickle(folder, scene):
    """Write the matrix as it was published."""
    content = {'conf_matrix': MATRIX.counts, 'labels': MATRIX.labels}
    (folder / f'{scene}_conf_matrix.pkl').write_bytes(pickle.dumps(content))


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / 'baseline.npz'
    write_confusions({'a': MATRIX, 'b': MATRIX}, path)
    return path


def test_rows_are_scenes_then_both_aggregations_also_as_json(archive):
    rows = rows_of(score(archive))
    assert [row['scene'] for row in rows] == ['a', 'b', 'overall', 'overall_mean']
    assert list(rows[0]) == ['miou', 'fmiou', 'macc', 'scene']
    for row in rows:
        assert float(row['macc']) == pytest.approx(0.75)
        assert float(row['miou']) == pytest.approx((6 / 9 + 3 / 6) / 2)
        assert float(row['fmiou']) == pytest.approx((6 / 9 * 8 + 3 / 6 * 4) / 12)
    found = json.loads(score(archive, '--format', 'json'))
    assert [row['scene'] for row in found] == [row['scene'] for row in rows]
    assert found[0]['macc'] == pytest.approx(0.75)


def test_an_ignored_class_is_left_out_and_nothing_left_is_no_figure(archive):
    assert float(rows_of(score(archive, '--ignore', 4))[0]['macc']) == pytest.approx(0.75)
    assert float(rows_of(score(archive, '--ignore', 4))[0]['miou']) == pytest.approx(0.5)
    assert rows_of(score(archive, '--ignore', 4, '--ignore', 7))[0]['macc'] == ''


def test_published_pickles_score_like_their_archive(tmp_path, archive):
    folder = tmp_path / 'published'
    folder.mkdir()
    for scene in 'ab':
        write_pickle(folder, scene)
    assert rows_of(score(folder)) == rows_of(score(archive))
    assert rows_of(score(*sorted(folder.iterdir()))) == rows_of(score(archive))
    both = rows_of(score(folder, archive))
    assert {row['source'] for row in both} == {str(folder), str(archive)}


def test_a_folder_of_conditions_gives_a_set_for_each(tmp_path, archive):
    for condition in ('baseline', 'velocity'):
        folder = tmp_path / 'bbq' / condition
        folder.mkdir(parents=True)
        write_pickle(folder, 'a')
        (folder / 'metrics.csv').write_text('miou')
    rows = rows_of(score(tmp_path / 'bbq'))
    assert [Path(row['source']).name for row in rows] == ['baseline'] * 3 + ['velocity'] * 3
    assert [row['scene'] for row in rows[:3]] == ['a', 'overall', 'overall_mean']


def test_saved_answers_of_two_methods_have_a_column_for_the_source(tmp_path):
    row = {'question': 'a?', 'answer': 'Yes', 'category': 'c', 'scene_graph_answer': 'Yes'}
    for method, verdict in (('bbq', 'N/A'), ('cg', 'Yes')):
        folder = tmp_path / method
        folder.mkdir()
        content = json.dumps([{**row, 'similar': verdict}])
        (folder / 'apt_0_baseline_evaluated.json').write_text(content)
    rows = rows_of(output_of('score', 'answers', tmp_path, '--no-baselines'))
    assert [Path(r['source']).name for r in rows] == ['bbq', 'cg']
    assert {(row['scene'], row['condition']) for row in rows} == {('apt_0', 'baseline')}
    assert [(row['unjudged'], row['accuracy']) for row in rows] == [('1', '0.0'), ('0', '1.0')]


def test_archives_of_several_runs_can_form_one_set(tmp_path, archive):
    parts = [tmp_path / f'run_{scene}.npz' for scene in 'ab']
    for path, scene in zip(parts, 'ab', strict=True):
        write_confusions({scene: MATRIX}, path)
    assert rows_of(score('--together', *parts)) == rows_of(score(archive))
    with pytest.raises(MetricError, match='scene "a" occurs twice'):
        score('--together', parts[0], archive)


def test_hostile_and_foreign_files_are_refused(tmp_path, archive):
    evil = tmp_path / 'evil_conf_matrix.pkl'
    evil.write_bytes(b"cos\nsystem\n(S'touch /tmp/osmabench_was_here'\ntR.")
    with pytest.raises(UnsafePickleError, match='system'):
        score(evil)
    other = tmp_path / 'other.pkl'
    other.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(MetricError, match=r'other\.pkl holds no dictionary'):
        score(other)
    with pytest.raises(MapError, match='does not exist'):
        score(tmp_path / 'missing.pkl')
    empty = tmp_path / 'empty'
    empty.mkdir()
    with pytest.raises(MetricError, match='holds neither'):
        score(empty)
    (tmp_path / 'copy.npz').write_bytes(archive.read_bytes())
    evil.unlink()
    with pytest.raises(MetricError, match='scene "a" occurs twice'):
        score(tmp_path)


def test_a_published_archive_gives_its_published_table():
    name = 'conceptgraphs_hm3d_velocity'
    archive = SEGMENTATION / f'{name}.npz'
    published = rows_of((SEGMENTATION / f'{name}.csv').read_text())
    expected = {row['scene']: row for row in published}
    rows = rows_of(score(archive))
    assert [row['scene'] for row in rows[:-2]] == list(read_confusions(archive))
    for row in rows:
        for metric in ('miou', 'fmiou', 'macc'):
            published_value = float(expected[row['scene']][metric])
            assert float(row[metric]) == pytest.approx(published_value, abs=1e-9)
