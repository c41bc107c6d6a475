"""Ground truth beside the sequences of a configuration."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

from osmabench_ros.base.files import filled_folder, write_json
from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.errors import OsmabenchError, RunError
from osmabench_ros.runs.config import MatrixConfig, SceneConfig
from osmabench_ros.runs.generation import GeneratedSequence, Progress
from osmabench_ros.runs.plan import RunPlan, plan_runs
from osmabench_ros.runs.preparation import GROUND_TRUTH_FOLDER, prepare_scene, scene_keys
from osmabench_ros.runs.results_folder import held

MARK = 'generated.json'


def generate_ground_truth(
    config: MatrixConfig, out: Path, progress: Progress | None = None
) -> list[GeneratedSequence]:
    """Make path, ground truth and questions of every scene below out/shared, as runs have them.

    They belong to the sequences that `generate_sequences` makes of the same configuration: both go
    by the same path. What an earlier call made is kept. Raises RunError if a folder is there that
    is not of this configuration, or another process is writing to `out`.
    """
    report = progress or (lambda _text, _fraction: None)
    plans = plan_runs(config, scene_keys(config), out)
    made = []
    with held(out):
        for directory, plan in {plan.shared_directory: plan for plan in plans}.items():
            digest, kept = _digest(config, plan.scene), directory.exists()
            if kept:
                _check(directory, digest)
            else:
                _make(plan, directory, digest, report)
            made.append(GeneratedSequence(directory / GROUND_TRUTH_FOLDER, kept))
    return made


def _make(plan: RunPlan, directory: Path, digest: str, report: Progress) -> None:
    """Make a folder that appears with its mark, so that one without is never ours."""
    with filled_folder(directory) as temporary:
        prepared = prepare_scene(replace(plan, root=temporary), report)
        write_json(prepared / MARK, {'sha256': digest})
        for entry in prepared.iterdir():
            entry.rename(temporary / entry.name)
        shutil.rmtree(temporary / prepared.relative_to(temporary).parts[0])


def _digest(config: MatrixConfig, item: SceneConfig) -> str:
    """Return the digest of everything that the ground truth depends on."""
    parts = (item, config.camera, config.robot, config.trajectory, config.simulator)
    text = json.dumps([part.model_dump(mode='json') for part in parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _check(directory: Path, digest: str) -> None:
    try:
        known = read_json(directory / MARK, RunError)
    except OsmabenchError:
        known = None
    if known != {'sha256': digest}:
        raise RunError(
            f'{directory} exists and is not of this configuration; choose another --out or '
            'remove it'
        )
