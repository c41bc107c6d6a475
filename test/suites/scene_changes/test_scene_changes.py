"""Changes of a furnished room: told by perfect maps, by bad ones, by files of BenchBot."""

import json
import math
from dataclasses import replace
from functools import cache

import pytest
from support.furnished_room import furnished_room, truth_of_room
from typer.testing import CliRunner

from osmabench_ros.cli.main import app
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.maps.disk.storage import write_map
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.scenes.change_kinds import Add, ChangeType, Move, Remove, Replace
from osmabench_ros.scenes.changes import changed_scene
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import ScoredLabel
from osmabench_ros.sequences.ground_truth import build_ground_truth, write_ground_truth
from osmabench_ros.suites.scene_changes.benchbot import score_benchbot
from osmabench_ros.suites.scene_changes.detection import detected_changes, true_changes, way_m
from osmabench_ros.suites.suite import SuiteContext, make_suite
from osmabench_ros.vqa.answering.baselines import ground_truth_map

CHANGES = (
    Move(kind='move', object='chair_10', offset_m=(-1.5, -0.5, 0)),
    Remove(kind='remove', object='plant_12'),
    Replace(kind='replace', object='box_15', like='stool_11', name='other stool'),
    Add(kind='add', name='second lamp', like='lamp_14', position_m=(-2.0, -2.0, 0)),
)
WANTED = {
    (ChangeType.MOVEMENT, 'chair', 'chair'),
    (ChangeType.REMOVAL, 'plant', ''),
    (ChangeType.REPLACEMENT, 'box', 'stool'),
    (ChangeType.ADDITION, '', 'lamp'),
}


CAMERA = Intrinsics.from_hfov(320, 240, math.radians(90))


@cache
def truth_before():
    return build_ground_truth(furnished_room(), truth_of_room().camera_poses[::2], CAMERA)


@cache
def truth_after():
    changed = changed_scene(furnished_room(), CHANGES)
    return build_ground_truth(changed, truth_of_room().camera_poses[::2], CAMERA)


def perfect(truth):
    made = ground_truth_map(truth.graph, truth.seen_instances, truth.label_set)
    return replace(made, dense=DenseMap(truth.surface.points))


def with_nodes(semantic_map, nodes):
    return replace(semantic_map, graph=replace(semantic_map.graph, nodes=tuple(nodes), edges=()))


def told(differences):
    return {
        (item.type, *('' if node is None else node.label for node in (item.before, item.after)))
        for item in differences.changes
    }


def figures(semantic_map, **options):
    context = SuiteContext('room', semantic_map, truth_after())
    found = make_suite('scene_changes', options).evaluate(context)
    return {(item.metric, item.class_name): item.value for item in found}


@pytest.fixture(scope='module')
def visits(tmp_path_factory):
    """Folders of the maps and the ground truths of both visits."""
    folder = tmp_path_factory.mktemp('visits')
    for name, truth in (('before', truth_before()), ('after', truth_after())):
        write_map(perfect(truth), folder / name)
        write_ground_truth(truth, folder / f'{name}_truth')
    return folder


def test_perfect_maps_tell_every_change_and_nothing_else():
    before, after = truth_before(), truth_after()
    assert told(true_changes(before, after)) == WANTED
    assert told(detected_changes(perfect(before), perfect(after))) == WANTED
    assert not detected_changes(perfect(before), perfect(before)).changes
    moved = detected_changes(perfect(before), perfect(after)).of_type(ChangeType.MOVEMENT)[0]
    assert moved.moved_m == pytest.approx((1.5**2 + 0.5**2) ** 0.5, abs=1e-3)


def test_a_thing_of_which_more_is_seen_has_not_moved():
    part = AxisAlignedBox([0, 0, 0], [0.5, 1, 1])
    assert way_m(part, AxisAlignedBox([0, 0, 0], [2, 1, 1])) == 0
    assert way_m(part, AxisAlignedBox([0.3, -0.4, 0], [0.8, 0.6, 1])) == pytest.approx(0.5)
    assert way_m(part, AxisAlignedBox([0.3, 0, 0], [2, 1, 1])) == pytest.approx(0.3)


def test_what_one_visit_has_not_looked_at_has_not_gone():
    before, after = perfect(truth_before()), perfect(truth_after())
    plant = next(node for node in before.graph.nodes if node.label == 'plant')
    points = after.dense.points
    far = ~((points >= plant.box.minimum - 1) & (points <= plant.box.maximum + 1)).all(axis=1)
    found = detected_changes(before, replace(after, dense=DenseMap(points[far])))
    assert told(found) == WANTED - {(ChangeType.REMOVAL, 'plant', '')}
    assert [item.before.label for item in found.unseen] == ['plant']


def test_figures_of_perfect_missing_and_false_changes(visits):
    options = {
        'before': str(visits / 'before'), 'before_ground_truth': str(visits / 'before_truth'),
    }  # fmt: skip
    after = perfect(truth_after())
    best = figures(after, **options)
    ones = ('precision', 'recall', 'f1', 'omq', 'omq_avg_state_quality', 'omq_avg_fp_quality')
    assert {name: best[name, ''] for name in ones} == dict.fromkeys(ones, pytest.approx(1.0))
    assert best['recall', 'replacement'] == best['precision', 'movement'] == 1
    # A map that makes up a bed and misses the new lamp.
    nodes = [node for node in after.graph.nodes if node.id != max(truth_after().seen_instances)]
    bed = next(node for node in nodes if node.label == 'bed')
    box = AxisAlignedBox(bed.box.minimum - [2.5, 0, 0], bed.box.maximum - [2.5, 0, 0])
    false = figures(with_nodes(after, [*nodes, replace(bed, id=900, box=box)]), **options)
    assert false['precision', ''] == false['recall', ''] == pytest.approx(3 / 4)
    assert (false['recall', 'addition'], false['precision', 'addition']) == (0, 0)
    # One of 6 things that came or went is missed, the made-up one costs 1.
    assert false['omq', ''] == pytest.approx(5 / 7, abs=1e-6)
    unsure = [
        replace(node, labels=(ScoredLabel(node.label, 0.125, node.class_id),) if node.labels
                else ()) for node in after.graph.nodes
    ]  # fmt: skip
    doubtful = figures(with_nodes(after, unsure), **options)
    assert doubtful['omq_avg_label', ''] == pytest.approx((1 + 0.125) / 2)  # half are of before
    assert doubtful['recall', ''] == 1
    assert doubtful['omq_map_avg_pairwise', ''] == pytest.approx(0.125**0.5, abs=1e-4)


def test_other_data_sets_have_other_ids():
    other = replace(truth_after(), label_set=LabelSet.from_names('other', ['bed']))
    with pytest.raises(Exception, match='ids of objects, which mean nothing across data sets'):
        true_changes(truth_before(), other)


def test_command_reports_differences_with_and_without_truth(visits, tmp_path):
    maps = [str(visits / 'before'), str(visits / 'after')]
    plain = CliRunner().invoke(app, ['changes', *maps, '--out', str(tmp_path / 'plain')])
    assert plain.exit_code == 0, plain.output
    assert 'movement: chair by 1.58 m' in plain.output
    assert 'replacement: box by stool' in plain.output
    page = (tmp_path / 'plain' / 'report.html').read_text()
    assert 'without a ground truth nothing here is scored' in page
    truths = [str(visits / f'{name}_truth') for name in ('before', 'after')]
    out = tmp_path / 'scored'
    call = ['changes', *maps, '--truth', *truths, '--align', '--out', str(out)]
    scored = CliRunner().invoke(app, call)
    assert scored.exit_code == 0, scored.output
    data = json.loads((out / 'changes.json').read_text())
    assert len(data['changes']) == len(data['true_changes']) == 4
    assert {r['metric']: r['value'] for r in data['records'] if not r['class_name']}['f1'] == 1


def benchbot_files(folder):
    """Write what BenchBot has: a cup that went, and a mug (a cup) and a bowl that came."""

    def thing(name, x, **more):
        return {'class': name, 'centroid': [x, 0, 0], 'extent': [1, 1, 1], **more}

    def truth(*things):
        return {'environment': {'name': 'room'}, 'ground_truth': {
            'class_list': ['cup', 'bowl'], 'synonyms': {'mug': 'cup'}, 'objects': list(things),
        }}  # fmt: skip

    def said(x, labels, states):
        return {'centroid': [x, 0, 0], 'extent': [1, 1, 1], 'label_probs': labels,
                'state_probs': states}  # fmt: skip

    same = thing('bowl', 20, id=1)
    results = {
        'task_details': {'name': 'scd:active', 'results_format': 'object_map_with_states'},
        'environment_details': {},
        'results': {'class_list': ['mug', 'spoon', 'bowl'], 'objects': [
            said(0, [2, 0, 0], [0, 1, 0]), said(5.5, [0.5, 0.25, 0], [0.8, 0, 0]),
            said(50, [0.4, 0.6, 0], [0.5, 0.1, 0]),
        ]},
    }  # fmt: skip
    data = {
        'before': truth(same, thing('cup', 0)),
        'after': truth(same, thing('Mug', 5), thing('bowl', 10)),
        'results': results,
    }
    for name, content in data.items():
        (folder / f'{name}.json').write_text(json.dumps(content))
    return [folder / f'{name}.json' for name in ('results', 'before', 'after')]


def test_files_of_benchbot_are_scored_as_by_its_code(tmp_path):
    results, *truths = benchbot_files(tmp_path)
    found = score_benchbot(results, truths)
    # The second has IoU 1/3, the name with 0.5, the state with 0.8; the third costs its cup.
    second, cost = (1 / 3 * 0.5 * 0.8) ** (1 / 3), (0.4 * 0.5) ** 0.5
    assert found.omq == pytest.approx((1 + second) / (3 + cost), abs=1e-6)
    assert (found.true_positives, found.false_positives, found.false_negatives) == (2, 1, 1)
    call = ['score', 'omq', str(results), *(v for t in truths for v in ('--truth', str(t)))]
    printed = CliRunner().invoke(app, [*call, '--format', 'json'])
    assert json.loads(printed.output)[0]['omq'] == found.omq
    with pytest.raises(Exception, match='against two truths, before and after, not 1'):
        score_benchbot(results, truths[:1])
    data = json.loads(results.read_text())
    data['results']['objects'][1]['label_probs'] = [1]
    results.write_text(json.dumps(data))
    with pytest.raises(Exception, match='object 1 has 1 label_probs, and class_list 3 names'):
        score_benchbot(results, truths)
