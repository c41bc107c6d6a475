"""The files and commands of docs/tutorial.md, in their order, in an empty environment."""

import csv
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / 'docs' / 'tutorial.md'
# Where temporary files are, and a ROS that was sourced.
OF_THE_MACHINE = ('TMPDIR', 'LANG', 'AMENT_PREFIX_PATH', 'LD_LIBRARY_PATH', 'PYTHONPATH')


@pytest.fixture
def environment(tmp_path):
    """Make an environment that has what `make env` installs, and nothing of this one's user."""
    folder = tmp_path / 'venv'
    venv.create(folder, symlinks=True)
    own = folder / 'lib' / f'python{sysconfig.get_python_version()}' / 'site-packages'
    installed = sysconfig.get_path('purelib')
    (own / 'made_by_make_env.pth').write_text(f"import site; site.addsitedir('{installed}')\n")
    for program, module in {'osmabench': 'osmabench_ros.cli', 'pip': 'pip'}.items():
        file = folder / 'bin' / program
        file.write_text(f'#!/bin/sh\nexec {folder}/bin/python -m {module} "$@"\n')
        file.chmod(0o755)
    # Libraries of ROS from PyPI are next to the libraries of Python.
    for place in ('lib', 'share'):
        (folder / place).mkdir(exist_ok=True)
        for item in Path(sys.prefix, place).iterdir():
            if not (folder / place / item.name).exists():
                (folder / place / item.name).symlink_to(item)
    (tmp_path / 'home').mkdir()
    kept = {name: os.environ[name] for name in OF_THE_MACHINE if name in os.environ}
    return {**kept, 'PATH': f'{folder}/bin:/usr/bin:/bin', 'HOME': str(tmp_path / 'home')}


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.ros
@pytest.mark.gl
@pytest.mark.timeout(1200)
def test_a_scene_a_mapper_and_a_suite_of_ones_own(tmp_path, environment):
    text = PAGE.read_text('utf-8')
    steps = text[text.index('## 2.') : text.index('## 6.')]
    folder = tmp_path / 'my_lab'
    folder.mkdir()
    said = {}
    for kind, block in re.findall(r'^```(\w*)\n(.*?)^```', steps, re.DOTALL | re.MULTILINE):
        if kind:
            name = block.splitlines()[0].removeprefix('# ')
            (folder / name).write_text(block, 'utf-8')
            continue
        for line in block.splitlines():
            done = subprocess.run(
                line, shell=True, cwd=folder, env=environment, capture_output=True, text=True
            )  # fmt: skip
            assert done.returncode == 0, f'{line}\n{done.stdout}\n{done.stderr}'
            said[line] = done.stdout
    assert 'Chair.001: chair' in said['osmabench scene import lab.glb --out lab']
    assert (folder / 'scene.png').is_file()
    matrix = folder / 'runs' / 'lab'
    assert (matrix / 'report.html').is_file()
    with (matrix / 'report.csv').open(newline='', encoding='utf-8') as file:
        records = [item for item in csv.DictReader(file) if item['metric'] == 'share_mapped']
    shares = {(item['mapper'], item['condition']): float(item['value']) for item in records}
    runs = {(a, b) for a in ('mine', 'tsdf') for b in ('baseline', 'camera', 'velocity')}
    assert shares.keys() == runs
    assert all(0.5 < share <= 1 for share in shares.values())
    [compared] = (text for line, text in said.items() if ' compare ' in line)
    assert 'share_mapped' in compared
    assert (folder / 'comparison' / 'comparison.html').is_file()
    for name in ('headline', 'reach'):
        table = (folder / 'paper' / f'{name}.tex').read_text('utf-8')
        assert table.count(r'\begin{tabular}') == 1
        assert 'mine' in table
        assert 'tsdf' in table
