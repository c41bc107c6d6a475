"""Rerun recordings of a run, or of a map next to its ground truth, from disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.strict import read_model
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.storage import read_map
from osmabench_ros.reports.camera_track import track_of_run
from osmabench_ros.reports.headline import headlines
from osmabench_ros.reports.outcomes import read_max_distance
from osmabench_ros.reports.pictures.graph_errors import ERROR_TITLES
from osmabench_ros.reports.rerun.rerun_recording import RerunScene, require_rerun, write_rerun
from osmabench_ros.runs.matrix_on_disk import open_run
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.sequences.ground_truth import read_ground_truth

COLOR_NAMES = ('blue', 'orange', 'yellow', 'pink', 'dark red')
"""Of ERROR_COLORS, for texts."""


def record_run(
    plan: RunPlan, file: Path, progress: Progress = silent, *, overwrite: bool = False
) -> None:
    """Write the Rerun recording of a run on disk with a recorded map."""
    require_rerun()
    semantic_map = read_map(plan.map_directory)
    truth = read_ground_truth(plan.ground_truth_directory)
    about = [f'# {plan.identity.run_id}', *_describe_provenance(semantic_map), *_describe_legend()]
    if plan.report_file.exists():
        about += _describe_metrics(read_model(RunReport, plan.report_file))
    view = RerunScene(
        plan.identity.run_id,
        '\n'.join(about),
        semantic_map,
        truth,
        read_max_distance(plan.config.suites),
        plan.config.camera.intrinsics,
        track_of_run(plan),
    )
    write_rerun(view, file, progress, overwrite=overwrite)


def record_runs(
    directories: Sequence[Path],
    file: Path,
    progress: Progress = silent,
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Write Rerun recordings, of several runs a file each next to `file`; return the files."""
    files = []
    for directory in directories:
        name = f'{file.stem}.{directory.name}{file.suffix}'
        files.append(file.with_name(name) if len(directories) > 1 else file)
        record_run(open_run(directory), files[-1], progress, overwrite=overwrite)
    return files


def record_map(
    map_directory: Path,
    ground_truth_directory: Path | None,
    file: Path,
    progress: Progress = silent,
    *,
    max_distance_m: float = 0.1,
    overwrite: bool = False,
) -> None:
    """Write the Rerun recording of a map on disk; with ground truth, also its errors."""
    require_rerun()
    semantic_map = read_map(map_directory)
    truth = None if ground_truth_directory is None else read_ground_truth(ground_truth_directory)
    about = [f'# {map_directory.name}', *_describe_provenance(semantic_map)]
    if truth is not None:
        about += _describe_legend()
    name = semantic_map.header.provenance.method or map_directory.name
    view = RerunScene(name, '\n'.join(about), semantic_map, truth, max_distance_m)
    write_rerun(view, file, progress, overwrite=overwrite)


def _describe_provenance(semantic_map: SemanticMap) -> list[str]:
    origin = semantic_map.header.provenance
    points = 0 if semantic_map.dense is None else len(semantic_map.dense.points)
    counts = {
        'frames': origin.frames_used,
        'points': points,
        'nodes': len(semantic_map.graph.nodes),
        'edges': len(semantic_map.graph.edges),
    }
    found = ', '.join(f'{count:,} {name}' for name, count in counts.items())
    return ['', f'{origin.method or "unknown method"} {origin.method_version}: {found}.']


def _describe_legend() -> list[str]:
    rows = [
        f'| {title} | {color} |' for title, color in zip(ERROR_TITLES, COLOR_NAMES, strict=True)
    ]
    return ['', '## Errors', '', '| what | colour |', '|---|---|', *rows]


def _describe_metrics(report: RunReport) -> list[str]:
    rows = [
        f'| {item.title} | {item.text(record)} |'
        for item in headlines()
        if item.in_charts and (record := item.record_in(report.metrics)) is not None
    ]
    return ['', '## Metrics', '', '| metric | value |', '|---|---|', *rows]
