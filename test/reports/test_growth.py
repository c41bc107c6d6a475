"""Maps on the way, scored and shown."""

import re
import shutil

import pytest
from support import scripted_model
from support.loopback_models import LoopbackModels
from support.world import box_room
from support.world.matrix import SCENE_KEY, config, inputs_of

from osmabench_ros.base.progress import silent
from osmabench_ros.mappers.mapper import make_mapper
from osmabench_ros.maps.storage import read_map, write_map
from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.runs.evaluation import OVER_TIME, score_over_time
from osmabench_ros.runs.plan import GROUND_TRUTH_FOLDER, plan_runs
from osmabench_ros.sequences.ground_truth import read_ground_truth


def scored(plan):
    return score_over_time(
        inputs_of(plan),
        list(plan.config.suites),
        plan.snapshots_directory,
        silent,
        first_stamp_ns=box_room.frames(count=1, size=(80, 60))[0].stamp_ns,
    )


def copy_matrix(matrix, root):
    """Copy a matrix; return the plan of its first run there."""
    shutil.copytree(matrix.root, root)
    settings = config()
    return plan_runs(settings, {settings.scenes[0]: SCENE_KEY}, root)[0]


@pytest.fixture(scope='module')
def plan(matrix, tmp_path_factory):
    """The first run of a copy of the matrix, with a map after every third frame."""
    plan = copy_matrix(matrix, tmp_path_factory.mktemp('grown') / 'matrix')
    truth = read_ground_truth(plan.shared_directory / GROUND_TRUTH_FOLDER)
    mapper = make_mapper(
        plan.mapper.name, label_set=truth.label_set, seed=0, options=plan.mapper.options
    )
    for number, frame in enumerate(box_room.frames(count=12, size=(80, 60)), start=1):
        mapper.integrate(frame)
        if number % 3 == 0:
            folder = plan.snapshots_directory / f'{frame.stamp_ns:019d}'
            write_map(mapper.semantic_map(final=False), folder)
    return plan


@pytest.fixture(scope='module')
def growth(plan):
    return scored(plan)


def values(growth, metric):
    return [
        record.value
        for moment in growth.moments
        for record in moment.metrics
        if (record.metric, record.mode, record.class_name) == (metric, 'strict', '')
    ]


def test_quality_grows_and_the_last_map_counts_once(growth):
    frames = [moment.frames for moment in growth.moments]
    assert frames[-1] == 12
    assert frames == sorted(set(frames))
    times = [moment.time_s for moment in growth.moments]
    assert times == sorted(set(times))
    macc = values(growth, 'macc')
    assert len(macc) == len(frames) > 2
    assert macc[-1] == max(macc) > macc[0]
    [mean] = [item for item in growth.metrics if item.metric == 'macc_over_frames'
              and item.mode == 'strict']  # fmt: skip
    expected = sum(
        value * (after - before)
        for value, before, after in zip(macc, frames, frames[1:], strict=False)
    )
    assert mean.value == pytest.approx(expected / frames[-1])
    assert mean.run_id == growth.run_id


def test_it_is_scored_once_and_the_answers_of_the_run_stay(plan, growth):
    file = plan.directory / OVER_TIME
    answers = sorted((plan.directory / 'vqa').rglob('*'))
    before = file.stat().st_mtime_ns, [path.stat().st_mtime_ns for path in answers]
    assert scored(plan) == growth
    assert (file.stat().st_mtime_ns, [path.stat().st_mtime_ns for path in answers]) == before


def test_a_method_without_maps_on_the_way_has_its_final_one(matrix, tmp_path):
    plan = copy_matrix(matrix, tmp_path / 'matrix')
    frames = [moment.frames for moment in scored(plan).moments]
    assert frames == [read_map(plan.map_directory).header.provenance.frames_used]


@pytest.mark.full
def test_the_page_shows_it(plan, growth, matrix, html):
    assert 'id="growth"' not in html
    write_matrix_report(plan.config, [plan], matrix.report.runs[:1], plan.root)
    html = (plan.root / 'report.html').read_text()
    section = html[html.index('<section id="growth"') :].split('</section>')[0]
    text = re.sub(r'\s+', ' ', re.sub(r'<[^>]+>', ' ', section))
    assert f'oracle · baseline {len(growth.moments)} ' in text
    assert 'aria-label="Metrics of the maps over time"' in section
    assert 'data-chart="growth"' in section
    assert '<a href="#growth">' in html


@pytest.mark.full
def test_a_language_model_is_not_asked_about_maps_on_the_way(plan, matrix, tmp_path):
    shutil.copytree(plan.root, tmp_path / 'matrix')
    (tmp_path / 'matrix' / plan.identity.run_id / OVER_TIME).unlink(missing_ok=True)
    with LoopbackModels(reply=scripted_model.reply) as server:
        options = {'answerer': 'openai:m', 'base_url': server.url, 'cache': str(tmp_path / 'kept')}
        suites = (
            SuiteConfig(name='osma_segmentation'),
            SuiteConfig(name='exact_questions', options=options),
        )
        settings = plan.config.model_copy(update={'suites': suites})
        asking = plan_runs(settings, {plan.scene: SCENE_KEY}, tmp_path / 'matrix')[0]
        growth = scored(asking)
        assert server.received == []
    assert growth.final_only == ('exact_questions',)
    assert {item.suite for item in growth.metrics} == {'osma_segmentation'}
    write_matrix_report(settings, [asking], matrix.report.runs[:1], asking.root)
    html = (asking.root / 'report.html').read_text()
    assert 'asked about final maps only, so exact_questions is not among' in html
