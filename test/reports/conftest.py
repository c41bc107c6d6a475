"""One synthetic matrix, and its page, for all tests of reports."""

from pathlib import Path

import pytest
from support.world.matrix import Matrix, config, write_matrix

from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.runs.results.report_model import MatrixReport


@pytest.fixture(scope='session')
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    return write_matrix(tmp_path_factory.mktemp('matrix'))


@pytest.fixture(scope='session')
def written(matrix: Matrix) -> MatrixReport:
    return write_matrix_report(config(), matrix.plans, matrix.report.runs, matrix.root)


@pytest.fixture(scope='session')
def page(matrix: Matrix, written: MatrixReport) -> Path:
    return matrix.root / 'report.html'


@pytest.fixture(scope='session')
def html(page: Path) -> str:
    return page.read_text(encoding='utf-8')
