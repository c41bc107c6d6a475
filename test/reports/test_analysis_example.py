"""The notebook of examples/ runs on the report of a matrix."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

EXAMPLE = Path(__file__).parents[2] / 'examples' / 'analysis.py'


def test_the_notebook_runs(page, tmp_path):
    shutil.copy(page.with_name('report.json'), tmp_path)
    done = subprocess.run(
        [sys.executable, EXAMPLE],
        env={**os.environ, 'OSMABENCH_RESULTS': str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('boxes: 6 runs')
    assert 'points  ' in done.stdout
    with Image.open(tmp_path / 'changes_by_class.png') as picture:
        assert picture.width > 400
