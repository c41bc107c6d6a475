"""One synthetic matrix, what a command leaves of it, and its page, for all tests of reports."""

from shutil import which

import pytest
from support.world.matrix import config, left_by_a_command, write_matrix

from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.reports.tidy import join_runs
from osmabench_ros.runs.plan import GROUND_TRUTH_FOLDER
from osmabench_ros.sequences.ground_truth import read_ground_truth


@pytest.fixture(scope='session')
def matrix(tmp_path_factory):
    return write_matrix(tmp_path_factory.mktemp('matrix'))


@pytest.fixture(scope='session')
def written(matrix):
    return write_matrix_report(config(), matrix.plans, matrix.report.runs, matrix.root)


@pytest.fixture(scope='session')
def left(matrix, tmp_path_factory):
    return left_by_a_command(matrix, tmp_path_factory.mktemp('left') / 'boxes')


@pytest.fixture(scope='session')
def runs(matrix):
    return join_runs(matrix.plans, matrix.report.runs)


@pytest.fixture(scope='session')
def truth(matrix):
    return read_ground_truth(matrix.plans[0].shared_directory / GROUND_TRUTH_FOLDER)


@pytest.fixture(scope='session')
def page(matrix, written):
    return matrix.root / 'report.html'


@pytest.fixture(scope='module')
def browser():
    playwright = pytest.importorskip('playwright.sync_api')
    arguments = ['--no-sandbox', '--enable-unsafe-swiftshader']
    launch = {'executable_path': which('chromium'), 'args': arguments}
    with playwright.sync_playwright() as started, started.chromium.launch(**launch) as opened:
        yield opened


@pytest.fixture(scope='session')
def html(page):
    return page.read_text(encoding='utf-8')
