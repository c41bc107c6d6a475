"""The runs of a matrix and the language-model requests it would make, without executing them."""

from collections.abc import Iterator
from pathlib import Path

from osmabench_ros.language.settings import run_dry
from osmabench_ros.metrics.comparison import estimate_power
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.evaluate.evaluation import make_suites
from osmabench_ros.runs.matrix_on_disk import Stage, next_stage
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.run_manifest import find_extra_work
from osmabench_ros.suites.hypo3d.suite import hypo3d_options
from osmabench_ros.suites.suite import models_asked_by

DONE = 'done'
MAPPED_BESIDE = 'hypo3d also maps changed scenes, which are chosen once these runs are done'


@run_dry()
def list_expected_work(config: MatrixConfig, out: Path, *, fresh: bool = False) -> list[str]:
    """Return the planned work, a line each; loads the scenes, writes nothing.

    Raises RunError, key by key, if there are results that were made otherwise, unless `fresh`.
    """
    preparation = Preparation()
    preparation.check_names(config)
    preparation.check_mappers(config)
    plans = preparation.plans(config, out / config.name)
    work = dict.fromkeys((plan.identity.run_id for plan in plans), _from(Stage.PREPARE))
    if not fresh:
        extra = find_extra_work(plans, preparation.digest_of)
        stages = {plan.identity.run_id: next_stage(plan.directory) for plan in plans}
        work = {run_id: _from(stage) if stage else DONE for run_id, stage in stages.items()}
        for plan, reasons in extra.runs:
            why = '; '.join(map(str, reasons))
            work[plan.identity.run_id] = f'{_from(Stage.EVALUATE)}, since {why}'
    identities = [plan.identity for plan in plans]
    columns = len({(item.condition, item.mapper) for item in identities})
    power = estimate_power((item.place for item in identities), columns)
    beside = hypo3d_options(config.suites)
    later = [MAPPED_BESIDE] if beside and (beside.remap or beside.live_maps_every) else []
    lines = (f'{run_id}: {left}' for run_id, left in work.items())
    maps = sum(left != DONE for left in work.values())
    return [*lines, *later, *_describe_models(config, maps), *power]


def _from(first: Stage) -> str:
    stages = [stage.value for stage in Stage]
    return f'to do: {", ".join(stages[stages.index(first.value) :])}'


def _describe_models(config: MatrixConfig, maps: int) -> Iterator[str]:
    suites = make_suites(config.suites)
    asking = {suite.name: models_asked_by(suite) for suite in suites if models_asked_by(suite)}
    if not asking:
        yield 'no language model is asked'
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
