"""Builds the report of a large matrix from copies of a real one's runs, and opens it in a browser.

    osmabench run demo --out runs
    python benchmarks/big_report.py runs/demo --runs 10000 --work /tmp/big

The copies are of other scenes, with figures moved by noise, so that there is something to compare.
Prints the time (median of some tries) and the peak memory of `osmabench report`, the same beside a
fixed load in the same run, which is to read and write the figures of the runs by the json module
alone, the sizes of what was written, and how long Chromium takes until pages are loaded.
"""

import json
import resource
import shutil
import sys
import time
from pathlib import Path
from shutil import which
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer
from measuring import timed_command

from osmabench_ros.base.files import claim_folder
from osmabench_ros.runs.evaluation import REPORT
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk
from osmabench_ros.runs.report_model import RunReport, without_classes
from osmabench_ros.runs.run_manifest import MANIFEST, METRICS

MOST_S, MOST_GIB, MOST_OPENING_S = 60.0, 2.0, 1.0


def copy_runs(source: MatrixOnDisk, root: Path, count: int) -> None:
    """Write a matrix of at least `count` copies of the runs of another, scene after scene."""
    claim_folder(root)
    rng = np.random.default_rng(0)
    originals = {run_id: _files_of(source.root / run_id) for run_id in source.run_ids}
    manifest = json.loads((source.root / MANIFEST).read_text())
    scenes, keys, names = [], [], []
    while len(names) < count:
        seed = 1000 + len(scenes)
        scenes.append({**manifest['config']['scenes'][0], 'seed': seed})
        keys.append({**manifest['scenes'][0], 'scene': f'seed_{seed}', 'seed': seed})
        for run_id, files in originals.items():
            dataset, scene, condition, mapper, simulator, *_ = run_id.split('.')
            name = '.'.join((dataset, f'seed_{seed}', condition, mapper, simulator, str(seed)))
            names.append(name)
            (root / name).mkdir()
            for file, text in files.items():
                moved = text.replace(run_id, name).replace(f'"{scene}"', f'"seed_{seed}"')
                if file == REPORT:
                    _write_report(json.loads(moved), seed, rng, root / name)
                elif file == MANIFEST:
                    noted = json.loads(moved)
                    noted['config']['scene']['seed'] = seed
                    (root / name / file).write_text(json.dumps(noted))
                else:
                    (root / name / file).write_text(moved)
    manifest['config']['scenes'], manifest['scenes'] = scenes, keys
    (root / MANIFEST).write_text(json.dumps(manifest))


def _files_of(run: Path) -> dict[str, str]:
    files = sorted(file for file in run.glob('*.json') if file.name != METRICS)
    return {file.name: file.read_text() for file in files}


def _write_report(report: dict[str, Any], seed: int, rng: np.random.Generator, run: Path) -> None:
    """Write a report with moved figures, and beside it what the end of a run notes of it."""
    records = report['metrics']
    for record, step in zip(records, rng.normal(0, 0.03, len(records)), strict=True):
        record['seed'] = seed
        if record['value'] is not None:
            record['value'] = float(np.clip(record['value'] + step, 0, 1))
    (run / REPORT).write_text(json.dumps(report))
    noted = without_classes(RunReport.model_validate(report))
    (run / METRICS).write_text(noted.model_dump_json())


def opening_s(page: Path, picture: Path) -> float:
    """Return the seconds until Chromium has loaded a page, and take a picture of it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=which('chromium'), args=['--no-sandbox'])
        tab = browser.new_page(viewport={'width': 1200, 'height': 900})
        before = time.perf_counter()
        tab.goto(page.as_uri(), wait_until='load')
        tab.evaluate('new Promise(done => requestAnimationFrame(() => setTimeout(done)))')
        passed_s = time.perf_counter() - before
        tab.screenshot(path=picture)
        browser.close()
    return passed_s


def build_s(root: Path, out: Path) -> tuple[float, float]:
    """Return wall time and processor time of building the report, in seconds."""
    shutil.rmtree(out, ignore_errors=True)
    wall_s, spent_s, warned = timed_command(['report', str(root), '--out', str(out)])
    if not (out / 'report.html').is_file():
        sys.exit(warned[-2000:])
    return wall_s, spent_s


def fixed_load_s(root: Path) -> float:
    """Return the seconds that json takes to read and write the figures of all runs."""
    started = time.perf_counter()
    for run in MatrixOnDisk(root).run_ids:
        json.dumps(json.loads((root / run / METRICS).read_text()))
    return time.perf_counter() - started


def main(
    matrix: Annotated[Path, typer.Argument(help='Folder of a real matrix, all runs done.')],
    runs: Annotated[int, typer.Option(min=1, help='Runs of the large one.')] = 10_000,
    work: Annotated[Path, typer.Option(help='Folder to work in; is kept.')] = Path('big_report'),
    times: Annotated[int, typer.Option(min=1, help='How often it is built.')] = 5,
    browser: Annotated[bool, typer.Option(help='Open the report in Chromium.')] = True,
) -> None:
    """Measure; exits with 1 beyond a limit."""
    root = work / f'runs_{runs}'
    if not root.exists():
        copy_runs(MatrixOnDisk(matrix), root, runs)
    tries = []
    for _ in range(times):
        load_s = fixed_load_s(root)
        tries.append((*build_s(root, work / 'report'), load_s))
        text = '{:.1f} s on the wall, {:.1f} s of processor, fixed load {:.1f} s'
        print(text.format(*tries[-1]))
    wall_s, cpu_s, load_s = (median(column) for column in zip(*tries, strict=True))
    gib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f'{runs} runs: median {wall_s:.1f} s on the wall, {cpu_s:.1f} s of processor')
    print(f'{wall_s / load_s:.1f} times the fixed load; {gib:.2f} GiB')
    pages = sorted((work / 'report').rglob('*.html'))
    largest = max(page.stat().st_size for page in pages)
    for name in ('report.html', 'report.json', 'report.csv'):
        print(f'{name}: {(work / "report" / name).stat().st_size / 1e6:.2f} MB')
    print(f'{len(pages)} pages, the largest {largest / 1e6:.2f} MB')
    within = wall_s <= MOST_S and gib <= MOST_GIB
    if browser:
        for page in (work / 'report' / 'report.html', pages[-1]):
            passed_s = opening_s(page, work / f'{page.stem}.png')
            print(f'{page.name} opens in {passed_s:.2f} s')
            within = within and passed_s <= MOST_OPENING_S
    raise typer.Exit(not within)


if __name__ == '__main__':
    typer.run(main)
