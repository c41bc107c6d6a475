"""Bags with maps become reports, without ROS."""

import html
import json
import math
import warnings

import numpy as np
import pytest
from support.commands import osmabench
from support.world.bags import make, odometry, tf, transform, write_messages
from support.world.maps import cloud as true_cloud
from support.world.maps import ground_truth, labelled_map, write_scan
from support.world.recorded_room import (
    START_NS,
    WORLD_TO_MAP,
    cloud,
    frames,
    images,
    labels,
    map_in_own_frame,
    own_map,
    poses,
    true_poses,
    write_room,
    write_true_poses,
)
from support.world.runs import small_config

from osmabench_ros import errors
from osmabench_ros.maps.storage import read_map
from osmabench_ros.runs.report_model import BagReport
from osmabench_ros.sequences.ground_truth import write_ground_truth

POSE = [*WORLD_TO_MAP.translation.tolist(), *WORLD_TO_MAP.quaternion.tolist()]


def evaluate(bag, out, *options):
    return osmabench('bag', 'evaluate', bag, '--out', out, '--device', 'cpu', *options)


def report_of(out):
    return BagReport.model_validate_json((out / 'report.json').read_text())


def values(out, suite, class_name=''):
    return {
        record.metric: record.value
        for record in report_of(out).metrics
        if (record.suite, record.class_name) == (suite, class_name) and record.mode != 'compat'
    }


@pytest.fixture
def truth(tmp_path):
    write_ground_truth(ground_truth(), tmp_path / 'truth')
    return tmp_path / 'truth'


@pytest.fixture
def out(tmp_path):
    return tmp_path / 'out'


@pytest.fixture
def bag(tmp_path):
    """Return a bag with a faultless map in the world."""
    return write_room(tmp_path / 'bag', cloud(labelled_map()), labels())


@pytest.mark.parametrize('kind', ['own', 'cloud'])
def test_a_faultless_map_in_the_world_gets_full_marks(kind, truth, tmp_path, out):
    made = labelled_map()
    messages = own_map(made) if kind == 'own' else [cloud(made), labels()]
    result = evaluate(write_room(tmp_path / 'bag', *messages), out, '--ground-truth', truth)
    assert values(out, 'osma_segmentation')['macc'] == 1.0
    assert values(out, 'map_geometry')['coverage'] == 1.0
    report = report_of(out)
    assert report.map_topic == {'own': '/semantic_map', 'cloud': '/mapper/cloud'}[kind]
    assert report.reference.startswith('ground truth ')
    assert report.hashes.keys() >= {'map', 'ground_truth'}
    assert not any('reference-free' in remark for remark in report.remarks)
    assert read_map(out / 'map').header.frame_id == 'world'
    page = (out / 'report.html').read_text()
    assert 'map_geometry' in page
    assert 'reference-free' not in page
    assert result.output.splitlines()[-1] == str(out / 'report.html')


def noisy_room(folder):
    """Write a bag of many chunks, with the map in the last one."""
    texts = [make('std_msgs/String', data=f'{index:02}' + 'x' * 100_000) for index in range(30)]
    noise = [('/noise', START_NS + index, text) for index, text in enumerate(texts)]
    write_room(folder, *noise, cloud(labelled_map()), labels())
    return folder / f'{folder.name}.mcap'


def overwrite(file, start, size):
    with file.open('r+b') as stream:
        stream.seek(start)
        stream.write(b'\xff' * size)


def test_a_bag_that_is_damaged_before_its_map_is_scored_with_a_message(truth, tmp_path, out):
    file = noisy_room(tmp_path / 'bag')
    overwrite(file, file.stat().st_size // 2, 150_000)
    result = evaluate(file.parent, out, '--ground-truth', truth)
    assert values(out, 'osma_segmentation')['macc'] == 1.0
    [remark] = [text for text in report_of(out).remarks if 'damaged' in text]
    assert remark.startswith('the bag is not complete: bag.mcap is damaged: the chunk at byte ')
    assert remark in ' '.join(result.output.split())
    assert remark in html.unescape((out / 'report.html').read_text())


def test_a_bag_whose_map_is_damaged_says_so_and_where(truth, tmp_path, out):
    file = noisy_room(tmp_path / 'bag')
    points = bytes(cloud(labelled_map())[2].data[:100])
    # The head of its message is in front of them.
    overwrite(file, file.read_bytes().index(points) - 400, 500)
    with pytest.raises(
        errors.SequenceError, match='bag.mcap is damaged: the chunk at byte .* no topic'
    ):
        evaluate(file.parent, out, '--ground-truth', truth)
    assert not out.exists()


def test_tf_puts_the_map_into_the_world(truth, tmp_path, out):
    bag = write_room(tmp_path / 'bag', cloud(map_in_own_frame()), labels(), frames())
    evaluate(bag, out, '--ground-truth', truth)
    assert values(out, 'osma_segmentation')['macc'] == 1.0
    assert values(out, 'map_geometry')['accuracy_m'] == pytest.approx(0, abs=1e-5)
    assert any('by the TF of the bag' in remark for remark in report_of(out).remarks)
    # Without TF the map is off by the transform that TF would have given.
    evaluate(bag, tmp_path / 'raw', '--ground-truth', truth, '--align', 'none')
    assert values(tmp_path / 'raw', 'map_geometry')['coverage'] < 0.5


def test_another_frame_without_tf_is_an_error_that_tells_the_choices(truth, tmp_path):
    bag = write_room(tmp_path / 'bag', cloud(map_in_own_frame()), labels())
    with pytest.raises(
        errors.ConfigError, match=r'frame "map".*"world".*--align icp, trajectory, or'
    ):
        evaluate(bag, tmp_path / 'out', '--ground-truth', truth)
    with pytest.raises(errors.ConfigError, match='--align'):
        evaluate(bag, tmp_path / 'out', '--ground-truth', truth, '--align', 'known')
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('kind', ['known', 'trajectory'])
def test_figures_come_as_recorded_and_aligned(kind, truth, tmp_path, out):
    bag = write_room(tmp_path / 'bag', cloud(map_in_own_frame()), labels(), *poses())
    how = ['--transform', *POSE] if kind == 'known' else ['--pose-topic', '/slam/odom']
    evaluate(bag, out, '--ground-truth', truth, '--align', kind, *how)
    assert values(out, 'map_geometry')['coverage'] < 0.5
    aligned = values(out, 'map_geometry@aligned')
    assert aligned['coverage'] == 1.0
    assert aligned['accuracy_m'] < (1e-5 if kind == 'known' else 0.01)
    residual = values(out, 'alignment')
    assert residual['rotation_deg'] == pytest.approx(math.degrees(0.4), abs=0.3)
    report = report_of(out)
    np.testing.assert_allclose(report.transform[:3], POSE[:3], atol=0.01)
    assert report.transform[7] == 1.0
    assert read_map(out / 'aligned' / 'map').header.frame_id == 'world'
    if kind == 'trajectory':
        assert residual['trajectory_rmse_m'] == pytest.approx(0.005 * math.sqrt(3), rel=0.2)


def test_icp_finds_a_small_displacement(tmp_path, out):
    pytest.importorskip('open3d', reason='open3d is not installed')
    made = labelled_map()
    # Walls, so that the room holds the map in all directions.
    along, up = (np.stack(np.meshgrid(np.arange(40), np.arange(25)), -1).reshape(-1, 2) / 10).T
    walls = [np.column_stack(rows) for rows in ((along, 0 * up, up), (0 * up, along, up))]
    points = np.concatenate([made.dense.points, *walls]).astype(np.float32)
    write_scan(tmp_path / 'scan.ply', points)
    moved = points + np.array([0.06, -0.05, 0.04], np.float32)
    shifted = type(made)(made.header, dense=type(made.dense)(moved))
    bag = write_room(tmp_path / 'bag', cloud(shifted))
    evaluate(bag, out, '--reference', tmp_path / 'scan.ply', '--align', 'icp')
    assert values(out, 'map_geometry')['accuracy_m'] > 0.03
    assert values(out, 'map_geometry@aligned')['accuracy_m'] < 0.005
    residual = values(out, 'alignment')
    assert residual['icp_fitness'] > 0.99
    assert residual['icp_rmse_m'] < 0.005
    assert residual['translation_m'] == pytest.approx(np.linalg.norm([6, 5, 4]) / 100, abs=0.005)
    assert values(out, 'osma_segmentation')['macc'] is None
    assert 'geometry only' in report_of(out).reference
    assert values(out, 'exact_questions')['accuracy'] is None
    write_scan(tmp_path / 'far.ply', points * 1000)
    evaluate(bag, tmp_path / 'far', '--reference', tmp_path / 'far.ply')
    [remark] = [text for text in report_of(tmp_path / 'far').remarks if 'only 0%' in text]
    assert 'Is the reference z up, in metres, and of this place?' in remark


def test_a_labelled_cloud_of_the_user_is_a_reference(tmp_path, out):
    seen = true_cloud()
    write_scan(tmp_path / 'scan.ply', seen.points, label=seen.labels, instance=seen.instances)
    (tmp_path / 'names.yaml').write_text('1: chair\n2: floor\n3: table\n')
    bag = write_room(tmp_path / 'bag', cloud(map_in_own_frame()), frames())
    words = ['--reference', tmp_path / 'scan.ply', '--labels', tmp_path / 'names.yaml']
    evaluate(bag, out, *words, '--reference-frame', 'world')
    assert values(out, 'osma_segmentation')['macc'] == 1.0
    assert values(out, 'map_geometry')['coverage'] == 1.0


def test_without_a_reference_the_map_is_described_and_the_report_says_so(tmp_path, out):
    room = *images(), cloud(map_in_own_frame()), labels(), *poses(), frames()
    bag = write_room(tmp_path / 'bag', *room)
    result = evaluate(bag, out)
    report = report_of(out)
    assert report.reference == ''
    assert 'note: reference-free' in result.output
    assert 'This report is reference-free' in (out / 'report.html').read_text()
    statistics = values(out, 'map_statistics')
    assert (statistics['points'], statistics['nodes']) == (300, 3)
    assert values(out, 'map_statistics', 'chair')['objects'] == 1
    timing = values(out, 'bag_timing', '/camera/color/image_raw')
    assert (timing['messages'], timing['gaps']) == (40, 0)
    assert timing['rate_hz'] == pytest.approx(10)
    assert timing['latency_p95_s'] == pytest.approx(0.02)
    own = values(out, 'bag_timing')
    assert (own['map_updates'], own['map_latency_p50_s']) == (1, 0.5)
    # The map of 3.0 s comes when the image of 3.4 s was the newest.
    assert own['map_staleness_max_s'] == pytest.approx(3.4)
    suites = {record.suite for record in report.metrics}
    assert suites == {'exact_questions', 'map_statistics', 'bag_timing'}
    assert values(out, 'exact_questions') == {'accuracy': None}


def test_the_stacks_own_poses_are_scored(tmp_path, out):
    bag = write_room(tmp_path / 'bag', cloud(map_in_own_frame()), labels(), *poses())
    evaluate(bag, out, '--pose-topic', '/slam/odom', '--rpe-delta', 1, '--rpe-unit', 'seconds')
    recorded, aligned = values(out, 'trajectory'), values(out, 'trajectory@aligned')
    assert recorded['ape_translation_rmse_m'] > 1
    assert recorded['ape_rotation_mean_deg'] == pytest.approx(math.degrees(0.4), abs=1e-3)
    assert aligned['ape_translation_rmse_m'] == pytest.approx(0.005 * math.sqrt(3), rel=0.2)
    assert aligned['rpe_translation_rmse_m'] == pytest.approx(0.005 * math.sqrt(6), rel=0.5)
    assert recorded['matched_poses'] == 1
    assert 'aligned by se3' in (out / 'report.html').read_text()
    assert len((out / 'trajectory' / 'estimate.tum').read_text().splitlines()) == 41
    remarks = report_of(out).remarks
    assert any('/ground_truth/odometry' in remark for remark in remarks)
    assert any('the poses are in "map", the true ones in "world"' in item for item in remarks)
    assert not any('the poses are of' in item for item in remarks)


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        (
            ['--pose-topic', '/slam/pose', '--reference-topic', '/nowhere'],
            'Choose from:.*/slam/po',
        ),
        (['--map-topic', '/slam/odom'], 'which is not a map'),
        (['--scene', 'apartment', '--run', 'somewhere'], 'one reference, not 2'),
        (['--reference-topic', '/slam/pose'], 'add --pose-topic'),
        (['--transform', *[1] * 7, '--run', 'x'], '--transform: a quaternion'),
        (['--run', 'absent'], 'is not a run with ground truth'),
    ],
)
def test_words_at_fault_are_named_and_nothing_is_written(words, message, tmp_path):
    bag = write_room(tmp_path / 'bag', cloud(labelled_map()), labels(), *poses())
    with pytest.raises(errors.ConfigError, match=message):
        evaluate(bag, tmp_path / 'out', *words, '--suite', 'map_geometry')
    assert sorted(item.name for item in tmp_path.iterdir()) == ['bag']


def test_a_report_is_replaced_only_by_force(bag, out):
    evaluate(bag, out)
    first = (out / 'report.json').read_bytes()
    with pytest.raises(errors.RunError, match='use --force'):
        evaluate(bag, out)
    evaluate(bag, out, '--force')
    assert (out / 'report.json').read_bytes() == first


def test_requirements_hold_or_the_exit_code_tells(truth, tmp_path, bag):
    wanted = [{'suite': 'map_geometry', 'metric': 'coverage', 'at_least': 0.9}]
    (tmp_path / 'own.yaml').write_text(json.dumps(small_config(requirements=wanted)))
    words = ['--config', tmp_path / 'own.yaml']
    evaluate(bag, tmp_path / 'held', *words, '--ground-truth', truth)
    # Nothing was measured against a reference: the threshold does not hold.
    with pytest.raises(errors.RequirementError, match='no such metric'):
        evaluate(bag, tmp_path / 'unmeasured', *words)


def test_tf_that_is_no_tree_is_named(truth, tmp_path):
    other = '/tf_static', START_NS + 1, tf(transform('odom', 'map', WORLD_TO_MAP))
    bag = write_room(tmp_path / 'bag', cloud(map_in_own_frame()), labels(), frames(), other)
    with pytest.raises(errors.ContractError, match='"map" has the parents "world" and "odom"'):
        evaluate(bag, tmp_path / 'out', '--ground-truth', truth)


@pytest.mark.parametrize(
    ('pace', 'name', 'speed'),
    [({}, '3', None), ({'pacing': 1, 'speed_factor': 0.5}, '3-p4.x0-5', 0.5)],
)
def test_what_the_bag_says_of_its_run_names_the_report(truth, tmp_path, out, pace, name, speed):
    run_id = f'test.room.camera.mine.real.{name}'
    info = make(
        'osmabench_ros/RunInfo', run_id=run_id, **pace,
        dataset='test', scene='room', condition='camera', mapper='mine', simulator='real', seed=3,
    )  # fmt: skip
    room = cloud(labelled_map()), labels(), ('/run_info', START_NS, info)
    evaluate(write_room(tmp_path / 'bag', *room), out, '--ground-truth', truth)
    report = report_of(out)
    assert report.run_id == run_id
    assert {record.speed_factor for record in report.metrics} == {speed}


def test_a_trajectory_is_scored_between_files_and_bags(tmp_path, out):
    bag = write_messages(tmp_path / 'bag', list(poses()))
    write_true_poses(tmp_path / 'true.tum')
    words = ['score', 'trajectory', f'{bag}:/slam/pose', tmp_path / 'true.tum']
    rows = json.loads(osmabench(*words, '--json').output)
    found = {(row['suite'], row['metric']): row['value'] for row in rows}
    rmse = found['trajectory@aligned', 'ape_translation_rmse_m']
    assert rmse == pytest.approx(0.005 * math.sqrt(3), rel=0.2)
    table = osmabench(*words, '--align', 'sim3', '--out', out)
    row = next(line for line in table.output.splitlines() if 'ape_translation_rmse' in line)
    assert float(row.split()[2]) == pytest.approx(rmse, rel=0.1)
    assert 'data-chart="trajectory"' in (out / 'trajectory.html').read_text()
    words[2] = bag
    with pytest.raises(errors.ConfigError, match='is a bag; name a topic of it'):
        osmabench(*words)


@pytest.mark.parametrize(
    ('estimate', 'warned'),
    [
        ('/slam/odom', ['are in "map", the true ones in "world"']),
        ('/camera/odom', ['to be copied', 'are of "camera_link", the true ones of "base_link"']),
        ('/ground_truth/odometry', ['to be copied']),
    ],
)
def test_trajectories_of_other_frames_are_scored_with_a_warning(estimate, warned, tmp_path, out):
    seen = [
        ('/camera/odom', stamp_ns, odometry(pose, stamp_ns, 'world', 'camera_link'))
        for stamp_ns, pose in true_poses()
    ]
    bag = write_messages(tmp_path / 'bag', [*poses(), *seen])
    words = ['score', 'trajectory', f'{bag}:{estimate}', f'{bag}:/ground_truth/odometry']
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter('always')
        assert osmabench(*words, '--out', out).exit_code == 0
    reported = [str(item.message) for item in given if item.category is errors.OsmabenchWarning]
    assert len(reported) == len(warned)
    page = html.unescape((out / 'trajectory.html').read_text())
    for text, expected in zip(reported, warned, strict=True):
        assert expected in text
        assert text in page


@pytest.mark.full
@pytest.mark.gl
def test_a_bag_without_true_poses_is_compared_along_the_path_of_the_configuration(
    tmp_path, bag, out
):
    config = small_config(
        name='short',
        suites=[{'name': 'map_geometry'}, {'name': 'osma_segmentation'}],
        camera={'width': 160, 'height': 120},
        trajectory={'goals': 1, 'frame_rate_hz': 1.0, 'max_frames': 2},
    )
    (tmp_path / 'short.yaml').write_text(json.dumps(config))
    evaluate(bag, out, '--scene', 'apartment', '--seed', 2, '--config', tmp_path / 'short.yaml')
    report = report_of(out)
    assert report.reference == ('scene apartment, seed 2, along the path of configuration "short"')
    assert report.run_id.startswith('apartment.seed_2.')
    # The plain room is not an apartment: that is measured, not refused.
    assert 0 <= values(out, 'map_geometry')['coverage'] < 0.2
    compat = [item for item in report.metrics if item.mode == 'compat' and item.metric == 'macc']
    assert [item.value for item in compat] != [None]


def test_a_rerun_recording_needs_a_reference(tmp_path, bag, out):
    pytest.importorskip('rerun', reason='rerun is not installed')
    with pytest.raises(errors.ConfigError, match='with its reference'):
        evaluate(bag, out, '--rerun', tmp_path / 'map.rrd')
    assert not out.exists()
    write_scan(tmp_path / 'scan.ply', true_cloud().points)
    words = ['--reference', tmp_path / 'scan.ply', '--rerun', tmp_path / 'map.rrd']
    evaluate(bag, out, *words, '--suite', 'map_geometry')
    assert (tmp_path / 'map.rrd').stat().st_size > 1000
