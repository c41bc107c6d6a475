"""Reports that are built again, and those of large matrices."""

import csv
import json
import os
import re
import shutil

import pytest
from support.world.matrix import HOSTILE, left_by_a_command

from osmabench_ros.base.files import write_json
from osmabench_ros.errors import ConfigError, RunError
from osmabench_ros.reports import matrix as reports
from osmabench_ros.reports.matrix import rebuild_report
from osmabench_ros.reports.page import page
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk, RunState
from osmabench_ros.runs.report_model import MatrixReport, Status
from osmabench_ros.runs.run_manifest import METRICS, PAGES, finish_run, lock_folder

FILES = ('report.json', 'report.csv', 'report.html')


@pytest.fixture
def whole(left, tmp_path):
    return MatrixOnDisk(shutil.copytree(left.root, tmp_path / 'whole'))


def figures_of(root):
    return [(root / name).read_bytes() for name in FILES]


@pytest.mark.full
def test_built_again_the_report_is_the_same_byte_for_byte(whole):
    before = figures_of(whole.root)
    for name in FILES:
        (whole.root / name).unlink()
    rebuild_report(whole)
    assert figures_of(whole.root) == before


def test_runs_copied_from_other_machines_count_as_done(whole, tmp_path):
    elsewhere = tmp_path / 'elsewhere'
    for run_id in whole.run_ids[::2]:
        (whole.root / run_id).rename(elsewhere.with_name(run_id))
    before, states = figures_of(whole.root), {run.state for run in whole.runs()}
    assert RunState.NOT_BEGUN in states
    assert not rebuild_report(whole).passed
    for run_id in whole.run_ids[::2]:
        shutil.copytree(elsewhere.with_name(run_id), whole.root / run_id)
    assert RunState.NOT_BEGUN not in {run.state for run in whole.runs()}
    rebuild_report(whole)
    assert figures_of(whole.root) == before


def test_runs_of_another_configuration_are_refused(whole):
    before, manifest = figures_of(whole.root), whole.root / whole.run_ids[0] / 'manifest.json'
    data = json.loads(manifest.read_text())
    write_json(manifest, {**data, 'config': {**data['config'], 'robot': {'radius_m': 0.9}}})
    with pytest.raises(RunError, match=f'{whole.run_ids[0]} was made with another configuration'):
        rebuild_report(whole)
    assert figures_of(whole.root) == before


@pytest.mark.full
def test_a_part_is_reported_as_a_part(whole):
    cut_off, absent = whole.run_ids[0], whole.run_ids[3]
    (whole.root / cut_off / 'report.json').unlink()
    shutil.rmtree(whole.root / absent)
    report = rebuild_report(whole)
    assert not report.passed
    assert {run.run_id for run in report.runs} == {*whole.run_ids} - {cut_off, absent}
    [warning] = [text for text in report.warnings if 'of a part' in text]
    assert '2 of 6 runs have no metrics yet' in warning
    assert cut_off in warning
    assert absent in warning
    assert warning in (whole.root / 'report.html').read_text()


def test_nothing_done_is_no_report(whole):
    for run_id in whole.run_ids:
        shutil.rmtree(whole.root / run_id)
    before = figures_of(whole.root)
    with pytest.raises(RunError, match='no run in .* is done yet'):
        rebuild_report(whole)
    assert figures_of(whole.root) == before


@pytest.mark.full
def test_a_folder_in_use_is_left(whole, tmp_path):
    with lock_folder(whole.root), pytest.raises(RunError, match='in use'):
        rebuild_report(whole)
    with lock_folder(whole.root):
        report = rebuild_report(whole, tmp_path / 'elsewhere')
    assert sum(run.status is Status.COMPLETE for run in report.runs) == 4


def test_the_report_of_a_sweep_is_not_replaced(whole):
    write_json(whole.root / 'report.json', {'schema_name': 'osmabench.sweep/1'})
    with pytest.raises(RunError, match='not a report of a matrix'):
        rebuild_report(whole)


@pytest.mark.full
def test_the_mapper_to_compare_with_can_be_chosen(whole, tmp_path):
    for name in ('oracle', 'noisy_oracle'):
        rebuild_report(whole, tmp_path / name, reference=name)
        text = (tmp_path / name / 'report.html').read_text('utf-8')
        assert f'Mappers under each condition, compared with “{name}”' in text
    with pytest.raises(ConfigError, match='"oracel". Did you mean "oracle"'):
        rebuild_report(whole, tmp_path / 'other', reference='oracel')


LINK = re.compile(r'href="([^"#]+)"')


@pytest.fixture(scope='module')
def large(matrix, tmp_path_factory):
    """Return six runs, reported two a page; a threshold is on a class."""
    found = left_by_a_command(matrix, tmp_path_factory.mktemp('large') / 'boxes')
    manifest = json.loads((found.root / 'manifest.json').read_text())
    on_class = {
        'suite': 'osma_segmentation', 'mode': 'strict', 'metric': 'iou', 'class_name': 'sofa',
        'mapper': 'oracle', 'at_least': 1.5,
    }  # fmt: skip
    manifest['config']['requirements'] = [on_class]
    write_json(found.root / 'manifest.json', manifest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports, 'MOST_ON_ONE_PAGE', 5)
        patch.setattr(reports, 'RUNS_A_PAGE', 2)
        patch.setattr(page, 'RUNS_A_PAGE', 2)
        rebuild_report(MatrixOnDisk(found.root))
    return MatrixOnDisk(found.root)


@pytest.mark.full
def test_the_pages_lead_to_each_other(large):
    first = large.root / 'report.html'
    pages = [first.parent / link for link in LINK.findall(first.read_text())]
    assert pages == sorted((large.root / PAGES).glob('*.html'))
    assert len(pages) == 3
    links = [[(page.parent / link).resolve() for link in LINK.findall(page.read_text())]
             for page in pages]  # fmt: skip
    one, two, three = (page.resolve() for page in pages)
    whole = first.resolve()
    assert links == [[whole, two], [whole, one, three], [whole, two]]


@pytest.mark.full
def test_every_run_is_on_one_page_with_all_figures_of_the_whole(large, matrix):
    texts = [page.read_text() for page in sorted((large.root / PAGES).glob('*.html'))]
    runs = iter(matrix.report.runs)
    for text in texts:
        figures = {
            item.metric for _, run in zip(range(2), runs, strict=False) for item in run.metrics
            if not item.class_name
        }  # fmt: skip
        assert figures
        assert all(f'<th scope="row">{metric}</th>' in text for metric in figures)
        assert 'id="injected"' not in text
    assert sum(text.count('failed: ') for text in texts) == 2
    assert HOSTILE not in ''.join(texts)


def test_the_first_page_is_about_the_whole(large):
    text = (large.root / 'report.html').read_text()
    provenance = text[text.index('id="provenance"') :]
    assert '<dt>Date</dt><dd>20' in provenance
    assert '6 runs' in text
    assert 'broken.opengl.0 failed: ' in text
    assert 'id="headline-table"' not in text
    assert 'mappers:' in text  # the configuration
    assert 'id="injected"' not in text


def test_json_and_csv_have_the_figures_over_all_classes(large, matrix):
    report = MatrixReport.model_validate_json((large.root / 'report.json').read_text())
    expected = [
        [item for item in run.metrics if not item.class_name or _is_required(item)]
        for run in matrix.report.runs
    ]
    assert [list(run.metrics) for run in report.runs] == expected
    assert [run.run_id for run in report.runs] == list(large.run_ids)
    with (large.root / 'report.csv').open() as file:
        rows = list(csv.DictReader(file))
    assert [row['metric'] for row in rows] == [item.metric for run in expected for item in run]


@pytest.mark.full
def test_the_noted_figures_give_the_same_report(matrix, tmp_path):
    found = left_by_a_command(matrix, tmp_path / 'boxes')
    done = [run.run_id for run in found.runs() if run.state is RunState.DONE]

    def reports():
        here = MatrixOnDisk(found.root)
        return [here.report(run, {('osma_segmentation', 'macc', '')}) for run in here.runs()]

    without = reports()
    assert any(item.class_name for run in without for item in run.metrics)  # by category
    for run_id in done:
        plan = found.plan(run_id)
        finish_run(plan)
        # That it is not read any more shows in what is wrong with it.
        text = plan.report_file.read_text().replace('"value":', '"values":')
        stamp = (plan.directory / METRICS).stat().st_mtime_ns
        plan.report_file.write_text(text)
        os.utime(plan.report_file, ns=(stamp, stamp))
    assert reports() == without
    os.utime(plan.report_file, ns=(stamp + 1, stamp + 1))
    with pytest.raises(RunError, match='is malformed'):
        reports()


def _is_required(item):
    key = (item.suite, item.metric, item.class_name)
    return key == ('osma_segmentation', 'iou', 'sofa')


def test_a_threshold_on_a_class_is_judged_all_the_same(large):
    report = MatrixReport.model_validate_json((large.root / 'report.json').read_text())
    assert not report.passed
    assert len(report.failed_requirements) == 2
    assert 'iou sofa >= 1.5' in report.failed_requirements[0]
    assert report.failed_requirements[0] in (large.root / 'report.html').read_text().replace(
        '&gt;', '>'
    )


@pytest.mark.full
def test_a_report_on_one_page_leaves_no_other_pages(large, tmp_path):
    (large.root / PAGES / 'notes.txt').write_text('mine')
    rebuild_report(large)
    assert [item.name for item in (large.root / PAGES).glob('[!.]*')] == ['notes.txt']
    assert 'id="headline-table"' in (large.root / 'report.html').read_text()
