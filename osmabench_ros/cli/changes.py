"""`osmabench changes`: what changed between two maps of one place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osmabench_ros.base.files import write_json
from osmabench_ros.base.owned_folder import claim_folder
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.maps.disk.storage import read_map
from osmabench_ros.maps.semantic_map import SemanticMap, transformed_map
from osmabench_ros.reports.page.scene_changes_page import write_scene_changes_page
from osmabench_ros.runs.results.results_folder import undisturbed
from osmabench_ros.sequences.ground_truth import read_ground_truth
from osmabench_ros.suites.scene_changes.detection import (
    DetectionOptions,
    detected_changes,
    true_changes,
)
from osmabench_ros.suites.scene_changes.scoring import (
    change_records,
    quality_of_changes,
    quality_records,
)
from osmabench_ros.suites.scene_changes.suite import CHANGES


def changes(
    before: Annotated[Path, typer.Argument(help='Map of the first visit, a folder.')],
    after: Annotated[Path, typer.Argument(help='Map of the second visit.')],
    truth: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help='Ground truth of both visits, for scores; two folders.'),
    ] = None,
    align: Annotated[
        bool, typer.Option('--align', help='First move the second map onto the first, by ICP.')
    ] = False,
    moved_m: Annotated[
        float, typer.Option('--moved', min=0.001, help='Least way of what has moved, metres.')
    ] = DetectionOptions().moved_m,
    out: Annotated[
        Path, typer.Option(help='Folder that gets changes.json and report.html.')
    ] = Path('scene_changes'),
) -> None:
    """List what came, went, moved or was replaced between two maps; needs no ROS.

    The maps may be of two bags of a real robot, by osmabench evaluate-bag, or of runs. Without a
    ground truth the result is a report of differences, without scores.
    """
    maps = read_map(before), read_map(after)
    if align:
        maps = maps[0], _onto(*maps)
    frames = [item.header.frame_id for item in maps]
    if frames[0] != frames[1]:
        raise ConfigError(
            f'{before} is in frame "{frames[0]}", {after} in "{frames[1]}"; give maps in one '
            'frame, or --align'
        )
    options = DetectionOptions(moved_m=moved_m)
    detected = detected_changes(*maps, options)
    found, records = [detected], []
    if truth is not None:
        known = [read_ground_truth(path) for path in truth]
        true = true_changes(known[0], known[1], options)
        found.append(true)
        records = list(change_records(detected, true))
        records += quality_records(quality_of_changes(detected, true, known[1].label_set), 'omq')
    with undisturbed(out):
        claim_folder(out)
        names = ('changes', 'true_changes')
        data = {
            name: [item.to_json() for item in part.changes]
            for name, part in zip(names, found, strict=False)
        }
        data['unseen'] = [item.to_json() for item in detected.unseen]
        data['records'] = [item.to_json() for item in records]
        write_json(out / CHANGES, data)
        page = write_scene_changes_page(found, maps, records, (before, after), out)
    for item in detected.changes:
        node = item.before or item.after
        assert node is not None
        way = f' by {item.moved_m:.2f} m' if item.moved_m else ''
        by = f' by {item.after.label}' if item.before and item.after and not way else ''
        typer.echo(f'{item.type.value}: {node.label}{way}{by}')
    for record in records:
        if not record.class_name and record.value is not None:
            typer.echo(f'{record.metric} {record.value:.3f} ({record.mode})')
    typer.echo(page)


def _onto(before: SemanticMap, after: SemanticMap) -> SemanticMap:
    """Return the second map in the frame of the first."""
    from osmabench_ros.metrics.registration import registered

    if before.dense is None or after.dense is None:
        raise ConfigError('--align moves points onto points; both maps need them')
    found = registered(after.dense.points, before.dense.points, None, Similarity.identity())
    for doubt in found.doubts:
        typer.echo(doubt, err=True)
    return transformed_map(after, found.similarity, before.header.frame_id)
