"""One synthetic matrix, and its page, for all tests of reports."""

from pathlib import Path

import pytest
from reports.synthetic_matrix import Matrix, write_matrix

from osmabench_ros.reports.page import write_page


@pytest.fixture(scope='session')
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    return write_matrix(tmp_path_factory.mktemp('matrix'))


@pytest.fixture(scope='session')
def page(matrix: Matrix) -> Path:
    return write_page(matrix.report, matrix.plans, matrix.root)


@pytest.fixture(scope='session')
def html(page: Path) -> str:
    return page.read_text(encoding='utf-8')
