"""Files of ScanRefer and Nr3D, and the figures that the published code gives for them."""

import csv
import json

import pytest
from support.commands import output_of
from support.published_rows import boxed
from support.world.scenes import truth_of_room

from osmabench_ros.errors import QuestionError
from osmabench_ros.suites.grounding import suite


def written(path, rows):
    path.write_text(json.dumps(rows))
    return path


def test_scanrefer_in_both_modes(tmp_path):
    truth = written(tmp_path / 'gt.json', [
        boxed(1, (0, 0, 0), (1, 1, 1), object_name='chair'),
        boxed(2, (5, 0, 0), (6, 1, 1), object_name='chair'),
        boxed(3, (9, 0, 0), (10, 1, 1), object_name='desk'),
        boxed(4, (20, 0, 0), (21, 1, 1), object_name='lamp'),
    ])  # fmt: skip
    said = written(tmp_path / 'pred.json', [
        # IoU 1/3, right at 0.25 alone; said to be unique, which it is not.
        boxed(1, (0.5, 0, 0), (1.5, 1, 1), unique_multiple=0, others=0),
        boxed(2, (5, 0, 0), (6, 1, 1), unique_multiple=1, others=0),
        boxed(2, (5, 0, 0), (6, 1, 1), unique_multiple=1, others=0),
        boxed(3, (9, 0, 0), (10, 1, 1), unique_multiple=0, others=1),
        # Of no expression: an IoU of 0.
        boxed(7, (9, 0, 0), (10, 1, 1), unique_multiple=0, others=1),
    ])  # fmt: skip
    rows = suite.scanrefer(truth).score_files([said])
    found = {(row['mode'], row['group'], row['metric']): row['value'] for row in rows}
    compat = {key: value for key, value in found.items() if key[0] == 'compat'}
    assert compat['compat', '', 'acc_025'] == 4 / 5
    assert compat['compat', '', 'acc_05'] == 3 / 5
    assert compat['compat', 'unique', 'acc_025'] == 2 / 3
    assert compat['compat', 'multiple', 'acc_05'] == 1.0
    assert compat['compat', 'unique/in_others', 'acc_05'] == 1 / 2
    # Every expression once; nothing was said of the lamp.
    assert found['strict', '', 'acc_025'] == 3 / 4
    assert found['strict', '', 'acc_05'] == 2 / 4
    assert found['strict', 'unique', 'acc_025'] == 1 / 2
    assert found['strict', 'multiple', 'acc_05'] == 1 / 2
    output = output_of('score', 'grounding', said, '--truth', truth, '--format', 'json')
    assert len(json.loads(output)) == len(found)


NR3D = [
    ('s-office_chair-3-7-8-9', 'the chair on the left', ['the', 'chair', 'on', 'the', 'left'],
     True, 7),
    ('s-office_chair-2-7-8', 'the Left one', ['the', 'Left', 'one'], False, 7),
    ('s-desk-2-3-4', 'the long desk', ['the', 'long', 'desk'], True, 4),
    ('s-desk-4-3-4-5-6', 'desk by the door', ['desk', 'by', 'the', 'door'], True, None),
]  # fmt: skip


def by_group(expressions):
    scores = suite.REFERIT3D.score(expressions)
    return {(x['mode'], x['group']): (x['value'], x['expressions']) for x in scores}


def test_nr3d_by_difficulty_and_viewpoint(tmp_path):
    file = tmp_path / 'nr3d.csv'
    with file.open('w', newline='') as stream:
        table = csv.writer(stream)
        table.writerow(('stimulus_id', 'utterance', 'tokens', 'mentions_target_class',
                        'predicted_id', 'instance_type'))  # fmt: skip
        table.writerows([*row, 'x'] for row in NR3D)
    read = suite.read_expressions(file)
    assert [(x.scene, x.same_class, x.target) for x in read[:2]] == [('s', 3, 7), ('s', 2, 7)]
    found = by_group(read)
    # compat leaves out what does not name the class, and takes tokens as they are.
    assert found['compat', ''] == (1 / 3, 3)
    assert found['compat', 'easy'] == (0.0, 1)
    assert found['compat', 'hard'] == (1 / 2, 2)
    assert found['compat', 'view_dependent'] == (1.0, 1)
    assert found['strict', ''] == (1 / 2, 4)
    assert found['strict', 'view_dependent'] == (1.0, 2)
    assert found['strict', 'view_independent'] == (0.0, 2)
    again = by_group([*read, *read[:1] * 9])
    assert again['strict', ''] == found['strict', '']
    assert again['compat', ''] == (10 / 12, 12)
    rest = by_group([item for item in read if not item.by_class])
    assert (rest['compat', ''], rest['strict', '']) == ((None, 0), (1.0, 1))
    keys = ('stimulus_id', 'utterance', 'tokens', 'mentions_target_class', 'predicted_id')
    rows = [dict(zip(keys, row, strict=True)) for row in NR3D]
    assert suite.read_expressions(written(tmp_path / 'nr3d.json', rows)) == read
    assert output_of('score', 'grounding', file)


def test_expressions_of_scanrefer_are_asked_of_the_scene_that_they_are_about(tmp_path):
    truth = truth_of_room()
    row = {'object_name': 'sofa', 'ann_id': '0', 'description': 'A red sofa.', 'token': ['a']}
    rows = [{**row, 'scene_id': scene, 'object_id': str(key)}
            for scene, key in ((truth.scene, 7), ('elsewhere', 7), (truth.scene, 99))]  # fmt: skip
    read = suite.read_expressions(written(tmp_path / 'scanrefer.json', rows))
    (question,) = suite.expressions_about(truth, 'room', read)
    assert '"A red sofa."' in question.text
    assert question.answer[:3] == pytest.approx((-3.9, -0.9, 0.0), abs=0.01)
    assert question.provenance['same_class'] == '1'


@pytest.mark.parametrize(('rows', 'message'), [
    ([], 'there is no expression'),
    ([{'stimulus_id': 's-desk-3-1', 'utterance': 'x'}], 'row 1: stimulus_id "s-desk-3-1"'),
    ([{'scene_id': 's'}], 'object_id'),
    ({'scene_id': 's'}, 'there is no expression'),
])  # fmt: skip
def test_a_fault_is_named(tmp_path, rows, message):
    with pytest.raises(QuestionError, match=message):
        suite.read_expressions(written(tmp_path / 'x.json', rows))


def test_a_csv_that_cannot_be_read_is_named(write_file):
    file = write_file('nr3d.csv', 'stimulus_id,utterance\n' + 's-desk-2-3-4,' + 'x' * 200_000)
    with pytest.raises(QuestionError, match=r'nr3d\.csv: .*field'):
        suite.read_expressions(file)
