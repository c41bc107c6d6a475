"""The files and commands of docs/tutorial.md, taken from the page itself, do what it says."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / 'docs' / 'tutorial.md'


@pytest.mark.slow
@pytest.mark.ros
@pytest.mark.gl
@pytest.mark.timeout(1200)
def test_a_scene_and_a_mapper_of_ones_own(tmp_path: Path) -> None:
    text = PAGE.read_text('utf-8')
    steps = text[text.index('## 2.') : text.index('When the mapper has changed')]
    environment = {
        **os.environ,
        'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}',
    }
    said = []
    for kind, block in re.findall(r'^```(\w*)\n(.*?)^```', steps, re.DOTALL | re.MULTILINE):
        if kind:
            name = block.splitlines()[0].removeprefix('# ')
            (tmp_path / name).write_text(block, 'utf-8')
            continue
        for line in block.splitlines():
            # The first of three conditions, so that the test does not cost all of them.
            line += ' --shard 1/3' if line == 'osmabench run lab.yaml' else ''
            done = subprocess.run(
                line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
            )  # fmt: skip
            assert done.returncode == 0, f'{line}\n{done.stdout}\n{done.stderr}'
            said.append((line, done.stdout))
    listed = dict(said)['osmabench import-scene lab.glb --out lab']
    assert 'Chair.001: chair' in listed
    matrix = tmp_path / 'runs' / 'lab.shard-1-of-3'
    with (matrix / 'report.csv').open(newline='', encoding='utf-8') as file:
        records = list(csv.DictReader(file))
    assert {item['mapper'] for item in records} == {'mine', 'oracle'}
    (fmiou,) = (
        float(item['value'])
        for item in records
        if (item['metric'], item['mapper'], item['mode'], item['class_name'])
        == ('fmiou', 'oracle', 'strict', '')
    )
    assert fmiou > 0.95
    assert (matrix / 'report.html').is_file()
