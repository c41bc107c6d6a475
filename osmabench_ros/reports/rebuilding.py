"""Builds the report of runs again from their folders: of a part, or of several folders at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.base.files import read_json
from osmabench_ros.base.owned_folder import claim_folder
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import ConfigError, RunError, suggestion
from osmabench_ros.reports.matrix import (
    MOST_ON_ONE_PAGE,
    Origin,
    required_figures,
    write_matrix_report,
)
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk, RunOnDisk, RunState
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.results.report_model import MATRIX_SCHEMA, MatrixReport, RunReport
from osmabench_ros.runs.results.results_folder import undisturbed
from osmabench_ros.runs.shard import ShardPart
from osmabench_ros.simulation.conditions import name_of_condition

_MOST_NAMED = 3
_READ_AT_ONCE = 100
"""Reports between two lines of progress."""
_ORDER = (RunState.DONE, RunState.FAILED, RunState.INCOMPLETE, RunState.RUNNING)


@dataclass(frozen=True)
class RelocatedPlan(RunPlan):
    """The plan of a run that has another name in a report than its folder has."""

    folder: Path = Path()

    @property
    def directory(self) -> Path:
        """Folder of the run."""
        return self.folder


@dataclass(frozen=True)
class _Member:
    """A run in one of the folders."""

    matrix: MatrixOnDisk
    run: RunOnDisk


def rebuild_report(
    matrices: Sequence[MatrixOnDisk],
    out: Path | None = None,
    *,
    allow_different: bool = False,
    reference: str = '',
    progress: Progress = silent,
) -> MatrixReport:
    """Write report.json, report.csv and report.html of what is done in some folders of runs.

    Parameters
    ----------
    matrices : sequence of MatrixOnDisk
        The folders; parts of one matrix, or of several.
    out : Path, optional
        Folder of the report; of one matrix its own folder by default.
    allow_different : bool
        Take folders of different configurations, inputs or versions: the mapper of every run then
        bears the name of its folder, and thresholds are not judged.
    reference : str
        Mapper that comes first, with which the others are compared; by default that of the
        configuration.
    progress : callable
        Gets how many reports were read.

    Raises
    ------
    RunError
        If the folders differ and may not, no run has a report, or a folder is in use.
    ConfigError
        If several folders are given, but no `out`, or no mapper is called `reference`.
    """
    if out is None and len(matrices) > 1:
        raise ConfigError('a report of several folders needs a place of its own: --out FOLDER')
    target = matrices[0].root if out is None else out
    found = list(_differences(matrices))
    if found and not allow_different:
        raise RunError(
            f'the folders differ: {_listed(found)}. Give folders of one configuration and '
            'version, or --allow-different to tell them apart in one report'
        )
    with ExitStack() as stack:
        if out is None:
            _refuse_other_report(target)
        else:
            claim_folder(target)
        stack.enter_context(undisturbed(target))
        members = _every(matrices) if found else _once_each(matrices)
        done = [member for member in members if _has_report(member)]
        if not done:
            raise RunError(f'no run in {", ".join(str(m.root) for m in matrices)} is done yet')
        labels = _labels(matrices) if found else {}
        config = matrices[0].config
        if found:
            config = config.model_copy(update={'requirements': ()})
        left = [member.run.run_id for member in members if not _has_report(member)]
        notes = [
            *(f'the folders differ: {item}; thresholds are not judged' for item in found),
            *(note for matrix in matrices for note in _mixed_versions(matrix)),
        ]
        planned = [(member, _plan(member, labels)) for member in done]
        planned = _scenes_together(planned) if found else _in_order(planned, config)
        if reference:
            planned = _first(reference, planned)
        return write_matrix_report(
            config,
            [plan for _, plan in planned],
            _reports(planned, config, progress),
            target,
            Origin(
                matrices[0].config_digest,
                tuple(left),
                tuple(notes),
                None if found else _part(matrices, members),
            ),
        )


def _first(mapper: str, planned: list[tuple[_Member, RunPlan]]) -> list[tuple[_Member, RunPlan]]:
    names = [plan.identity.mapper for _, plan in planned]
    if mapper not in names:
        raise ConfigError(f'no run is of mapper "{mapper}". {suggestion(mapper, set(names))}')
    return sorted(planned, key=lambda item: item[1].identity.mapper != mapper)


def _refuse_other_report(root: Path) -> None:
    file = root / 'report.json'
    schema = read_json(file).get('schema_name') if file.exists() else MATRIX_SCHEMA
    if schema != MATRIX_SCHEMA:
        raise RunError(f'{file} is no report of a matrix ({schema}); choose another --out')


def _has_report(member: _Member) -> bool:
    return member.matrix.has_report(member.run)


def _differences(matrices: Sequence[MatrixOnDisk]) -> Iterator[str]:
    """Yield what keeps the folders from being parts of one matrix, a sentence each."""
    first, *others = matrices
    for other in others:
        where = f'{other.root} and {first.root}'
        if other.config_digest != first.config_digest:
            yield f'{where} have different configurations'
        changed = sorted(
            name
            for name in other.inputs.keys() & first.inputs.keys()
            if other.inputs[name] != first.inputs[name]
        )
        if changed:
            yield f'{where} have a different {_listed(changed, ", ")}'
        for name in sorted(other.versions.keys() & first.versions.keys()):
            theirs, ours = other.versions[name], first.versions[name]
            if ours != theirs:
                yield f'{where} were scored with {name} {_texts(theirs)} and {_texts(ours)}'
    if len({item.config_digest for item in matrices}) == 1:
        yield from _contradictions(matrices)


def _part(matrices: Sequence[MatrixOnDisk], members: Sequence[_Member]) -> ShardPart | None:
    """Return the part of the matrix that the folders are together, None for the whole."""
    parts = [matrix.part for matrix in matrices if matrix.part is not None]
    runs = tuple(member.run.run_id for member in members)
    if len(parts) < len(matrices) or len(runs) >= parts[0].of:
        return None
    return ShardPart(shard=', '.join(part.shard for part in parts), runs=runs, of=parts[0].of)


def _mixed_versions(matrix: MatrixOnDisk) -> Iterator[str]:
    for name, found in matrix.versions.items():
        if len(found) > 1:
            yield f'the runs in {matrix.root} were scored with {name} {_texts(found)}'


def _contradictions(matrices: Sequence[MatrixOnDisk]) -> Iterator[str]:
    """Yield runs that are done in two folders with different figures."""
    seen: dict[str, _Member] = {}
    for member in _every(matrices):
        if member.run.state is not RunState.DONE:
            continue
        other = seen.setdefault(member.run.run_id, member)
        if other is not member and _figures(other) != _figures(member):
            folders = f'{other.matrix.root} and {member.matrix.root}'
            yield f'run {member.run.run_id} has different figures in {folders}'


def _figures(member: _Member) -> object:
    report = member.matrix.report(member.run)
    return report and report.metrics


def _every(matrices: Sequence[MatrixOnDisk]) -> list[_Member]:
    return [_Member(matrix, run) for matrix in matrices for run in matrix.runs()]


def _once_each(matrices: Sequence[MatrixOnDisk]) -> list[_Member]:
    """Return every run once, from the folder where it came farthest."""
    best: dict[str, _Member] = {}
    for member in _every(matrices):
        other = best.setdefault(member.run.run_id, member)
        if _rank(member) < _rank(other):
            best[member.run.run_id] = member
    return list(best.values())


def _rank(member: _Member) -> int:
    state = member.run.state
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)


def _labels(matrices: Sequence[MatrixOnDisk]) -> dict[Path, str]:
    """Return a label for each folder: the end of its path by which it differs from the others."""
    roots = [matrix.root.resolve() for matrix in matrices]
    longest = max(len(root.parts) for root in roots)
    for length in range(1, longest + 1):
        names = ['/'.join(root.parts[-length:]) for root in roots]
        if len(set(names)) == len(roots):
            break
    return {matrix.root: name for matrix, name in zip(matrices, names, strict=True)}


def _plan(member: _Member, labels: Mapping[Path, str]) -> RunPlan:
    plan = member.matrix.plan(member.run.run_id)
    if not labels:
        return plan
    mapper = f'{plan.identity.mapper} ({labels[member.matrix.root]})'
    fields = {item.name: getattr(plan, item.name) for item in dataclasses.fields(RunPlan)}
    fields['identity'] = dataclasses.replace(plan.identity, mapper=mapper)
    fields['config'] = plan.config.model_copy(update={'requirements': ()})
    return RelocatedPlan(**fields, folder=plan.directory)


def _scenes_together(
    planned: Sequence[tuple[_Member, RunPlan]],
) -> list[tuple[_Member, RunPlan]]:
    """Return the runs of several folders scene by scene, as those of one are."""
    scenes = dict.fromkeys(plan.identity.scene_key for _, plan in planned)
    place = {key: number for number, key in enumerate(scenes)}
    return sorted(planned, key=lambda item: place[item[1].identity.scene_key])


def _in_order(
    planned: Sequence[tuple[_Member, RunPlan]], config: MatrixConfig
) -> list[tuple[_Member, RunPlan]]:
    """Return runs in the order of their configuration, as if one command had done them all."""
    scenes, mappers, conditions = (
        {item: place for place, item in enumerate(items)}
        for items in (
            config.seeded_scenes,
            [mapper.name for mapper in config.mappers],
            [name_of_condition(item) for item in config.conditions],
        )
    )

    seeds = {seed: place for place, seed in enumerate(config.seeds.method or (None,))}

    def place(item: tuple[_Member, RunPlan]) -> tuple[int, int, int, int]:
        _, plan = item
        condition = conditions[plan.identity.condition]
        method_seed = seeds[plan.identity.method_seed]
        return scenes[plan.scene], condition, mappers[plan.mapper.name], method_seed

    return sorted(planned, key=place)


def _reports(
    planned: Sequence[tuple[_Member, RunPlan]], config: MatrixConfig, progress: Progress
) -> Iterator[RunReport]:
    classes = required_figures(config) if len(planned) > MOST_ON_ONE_PAGE else None
    for number, (member, plan) in enumerate(planned):
        if number % _READ_AT_ONCE == 0:
            progress(f'reading report {number + 1} of {len(planned)}', number / len(planned))
        report = member.matrix.report(member.run, classes)
        assert report is not None
        yield _named(report, plan) if isinstance(plan, RelocatedPlan) else report


def _named(report: RunReport, plan: RunPlan) -> RunReport:
    """Return a report under the name that its run has among those of other folders."""
    name = {'run_id': plan.identity.run_id, 'mapper': plan.identity.mapper}
    metrics = tuple(record.model_copy(update=name) for record in report.metrics)
    return report.model_copy(update={'run_id': plan.identity.run_id, 'metrics': metrics})


def _listed(texts: Sequence[str], between: str = '; ') -> str:
    rest = len(texts) - _MOST_NAMED
    more = f'{between}and {rest} more' if rest > 0 else ''
    return between.join(texts[:_MOST_NAMED]) + more


def _texts(found: Collection[str]) -> str:
    return ' or '.join(sorted(found))
