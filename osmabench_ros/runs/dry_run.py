"""The runs of a matrix and the language-model requests it would make, without executing them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from osmabench_ros.language.settings import nothing_asked
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.evaluate.evaluation import made_suites
from osmabench_ros.runs.expected_power import expected_power
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import Preparation
from osmabench_ros.suites.hypo3d.suite import hypo3d_options
from osmabench_ros.suites.suite import models_asked_by

MAPPED_BESIDE = 'hypo3d maps changed scenes beside these runs, which are chosen once they are done'


@nothing_asked()
def expected_work(config: MatrixConfig, out: Path) -> list[str]:
    """Return the planned work, a line each; loads the scenes, writes nothing."""
    preparation = Preparation()
    preparation.check_names(config)
    preparation.check_mappers(config)
    plans = preparation.plans(config, out / config.name)
    power = expected_power(plan.identity for plan in plans)
    beside = hypo3d_options(config.suites)
    later = [MAPPED_BESIDE] if beside and (beside.remap or beside.live_maps_every) else []
    return [*map(_of_run, plans), *later, *_of_models(config, plans), *power]


def _of_run(plan: RunPlan) -> str:
    return f'{plan.identity.run_id}: {"done" if plan.report_file.exists() else "to do"}'


def _of_models(config: MatrixConfig, plans: list[RunPlan]) -> Iterator[str]:
    suites = made_suites(config.suites)
    asking = {suite.name: models_asked_by(suite) for suite in suites if models_asked_by(suite)}
    if not asking:
        yield 'no language model is asked'
    maps = sum(not plan.report_file.exists() for plan in plans)
    for name, models in asking.items():
        yield f'{name} asks {" and ".join(models)} about the final map of each run, {maps} to do'
    if asking:
        yield 'the cost for a run with a map: osmabench vqa answer RUN --answerer MODEL --dry-run'
    every = config.evaluation.map_every_frames
    if asking and every:
        yield (
            f'scores over time (a map every {every} frames) leave out {", ".join(asking)}: '
            'a language model is asked about final maps only'
        )
