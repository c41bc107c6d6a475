"""What a matrix would run and which language models it would ask, without doing either."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.evaluation import made_suites
from osmabench_ros.runs.plan import RunPlan, plan_runs
from osmabench_ros.runs.preparation import check_mappers, check_names, scene_keys
from osmabench_ros.suites.suite import models_asked_by


def expected_work(config: MatrixConfig, out: Path) -> list[str]:
    """Return what a configuration would do, a line each; loads its scenes, writes nothing.

    Runs that are done in the matrix' folder below `out` stay done. Raises OsmabenchError if the
    configuration could not be run.
    """
    check_names(config)
    check_mappers(config)
    plans = plan_runs(config, scene_keys(config), out / config.name)
    return [*(_of_run(plan) for plan in plans), *_of_models(config, plans)]


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
