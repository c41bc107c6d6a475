"""Published answers give the published accuracies; constants beat methods in places."""

import csv
import json

import pytest
from shared_data import shared_path
from sklearn.metrics import cohen_kappa_score

from osmabench_ros.errors import QuestionError
from osmabench_ros.vqa.answer_table import answer_table
from osmabench_ros.vqa.judging.agreement import check_judge
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.published import read_saved_answers


@pytest.fixture(scope='module')
def hm3d():
    return read_saved_answers([shared_path('oracles', 'vqa', 'conceptgraphs_hm3d.jsonl.gz')])


@pytest.fixture(scope='module')
def replica():
    return read_saved_answers(
        [shared_path('oracles', 'vqa', 'conceptgraphs_replica_cad.jsonl.gz')]
    )


def _percent(value):
    return '0.00%' if value is None else f'{100 * value:.2f}%'


def test_all_24_published_rows_come_out(hm3d):
    published = shared_path('oracles', 'vqa', 'conceptgraphs_hm3d_metrics.csv')
    with published.open() as stream:
        expected = {row['File Name']: row for row in csv.DictReader(stream)}
    rows = [r for r in answer_table(hm3d, baselines=False) if r.scene != 'all']
    assert len(rows) == len(expected) == 24
    for row in rows:
        name = f'{row.scene}_{row.condition}_answered.json'
        categories = {key: _percent(row.categories.get(key)) for key in list(expected[name])[3:]}
        assert {
            'File Name': name,
            'Overall Accuracy': _percent(row.accuracy),
            'Accuracy (No Spatial)': _percent(row.accuracy_without_spatial),
            **categories,
        } == expected[name]


def test_constants_beat_the_method_in_places(replica):
    pooled = {(r.condition, r.answers): r for r in answer_table(replica) if r.scene == 'all'}
    no = pooled['baseline', 'always no'].categories
    yes = pooled['baseline', 'always yes'].categories
    given = pooled['baseline', 'given'].categories
    assert no['Binary Existence-Based'] == pytest.approx(0.991, abs=5e-4)
    assert yes['Binary Logical'] == pytest.approx(0.857, abs=5e-4)
    assert no['Binary Existence-Based'] > given['Binary Existence-Based']
    assert yes['Binary Logical'] > given['Binary Logical']


def test_dynamic_lights_cost_conceptgraphs_what_was_found_before(replica):
    pooled = {
        r.condition: r
        for r in answer_table(replica, reference_condition='baseline', baselines=False)
        if r.scene == 'all'
    }
    dynamic = pooled['dynamic_lights']
    assert dynamic.change == pytest.approx(-0.036, abs=1e-3)
    assert dynamic.change_low == pytest.approx(-0.054, abs=4e-3)
    assert dynamic.change_high == pytest.approx(-0.018, abs=4e-3)
    for other in ('camera_lights', 'velocity'):
        assert pooled[other].change_low < 0 < pooled[other].change_high


def test_the_judge_by_rule_accepts_equal_strings_and_agrees_with_the_published_one(hm3d, replica):
    saved = [*hm3d, *replica]
    check = check_judge(saved, DeterministicJudge())
    assert not check.equal_strings_rejected
    rows = {row.group: row for row in check.rows}
    assert rows['all'].n == len(saved)
    assert rows['all'].agreement > 0.95
    assert rows['all'].kappa > 0.9
    verdicts = DeterministicJudge().judge([(s.question, s.answer) for s in saved])
    other = cohen_kappa_score([v.correct for v in verdicts], [s.similar for s in saved])
    assert rows['all'].kappa == pytest.approx(other)
    assert 0 < len(check.doubtful) < 100


def test_answers_without_a_verdict_are_judged_and_without_scene_are_one_group(tmp_path):
    path = tmp_path / 'answers.jsonl'
    lines = [
        {'question': 'a?', 'answer': 'Yes', 'category': 'c', 'scene_graph_answer': 'yes.'},
        {'question': 'b?', 'answer': '2', 'category': 'd', 'scene_graph_answer': '3'},
    ]
    path.write_text('\n'.join(map(json.dumps, lines)))
    given, *_ = answer_table(read_saved_answers([path]))
    assert (given.scene, given.questions, given.accuracy) == ('', 2, 0.5)
    assert given.categories == {'c': 1.0, 'd': 0.0}


@pytest.mark.parametrize(
    ('line', 'fault'),
    [
        ('{"question": "a?"', 'not JSON'),
        ('{"question": "a?"}', '"answer" is missing'),
        ('["a"]', 'not an object'),
        ('{"question": "a", "answer": "b", "category": "c", "scene_graph_answer": "d", '
         '"similar": "perhaps"}', 'Yes or No'),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path, line, fault):
    path = tmp_path / 'answers.jsonl'
    path.write_text('\n' + line)
    with pytest.raises(QuestionError, match=rf'answers\.jsonl:2.*{fault}'):
        read_saved_answers([path])


def test_a_file_without_answers_is_an_error(tmp_path):
    path = tmp_path / 'empty.jsonl'
    path.touch()
    with pytest.raises(QuestionError, match='no answer'):
        read_saved_answers([path])
