"""One synthetic matrix, what a command leaves of it, and its page, for all tests of reports."""

from pathlib import Path

import pytest
from support.world.matrix import Matrix, config, left_by_a_command, write_matrix

from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.reports.tidy import Run, join_runs
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk
from osmabench_ros.runs.plan import GROUND_TRUTH_FOLDER
from osmabench_ros.runs.report_model import MatrixReport
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth


@pytest.fixture(scope='session')
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    return write_matrix(tmp_path_factory.mktemp('matrix'))


@pytest.fixture(scope='session')
def written(matrix: Matrix) -> MatrixReport:
    return write_matrix_report(config(), matrix.plans, matrix.report.runs, matrix.root)


@pytest.fixture(scope='session')
def left(matrix: Matrix, tmp_path_factory: pytest.TempPathFactory) -> MatrixOnDisk:
    return left_by_a_command(matrix, tmp_path_factory.mktemp('left') / 'boxes')


@pytest.fixture(scope='session')
def runs(matrix: Matrix) -> list[Run]:
    return join_runs(matrix.plans, matrix.report.runs)


@pytest.fixture(scope='session')
def truth(matrix: Matrix) -> GroundTruth:
    return read_ground_truth(matrix.plans[0].shared_directory / GROUND_TRUTH_FOLDER)


@pytest.fixture(scope='session')
def page(matrix: Matrix, written: MatrixReport) -> Path:
    return matrix.root / 'report.html'


@pytest.fixture(scope='session')
def html(page: Path) -> str:
    return page.read_text(encoding='utf-8')
