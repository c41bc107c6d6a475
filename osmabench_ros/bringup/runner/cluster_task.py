"""What a node of a cluster does with a run: on its own disk first, then into the shared folder."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from osmabench_ros.base.configuration import extra, version
from osmabench_ros.base.files import add_file, sha256_of
from osmabench_ros.base.owned_folder import claim_folder, draft_in, is_ours, remove_drafts
from osmabench_ros.base.processes import FULL_BELOW_BYTES
from osmabench_ros.base.progress import Progress
from osmabench_ros.bringup.runner.admission import capacity_here
from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from osmabench_ros.bringup.runner.side_by_side import (
    Reporter,
    WorkDone,
    WorkNews,
    WorkOrder,
    WorkWarning,
    carried_out,
)
from osmabench_ros.errors import ConfigError, OsmabenchError, RunError, errors_as, needing
from osmabench_ros.runs.evaluate.evaluation import INCOMPLETE
from osmabench_ros.runs.inputs import mapper_files, scene_name
from osmabench_ros.runs.matrix_on_disk import FAILURE
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import Preparation
from osmabench_ros.runs.results.report_model import Status

UPLOADED = 'uploaded.json'
"""The last file of an upload: the SHA-256 of every other; without it an upload is not whole."""
LONGEST_PAUSE_S = 15.0

_Result = TypeVar('_Result')


class NodeFaultError(RunError):
    """A node cannot do what another may; names the node's part at fault."""


@dataclass(frozen=True)
class ClusterOrder:
    """Work for any node, whose plan is that of the shared folder; no secret is part of it.

    The result goes to `delivery`, a path of this one try. `inputs` are what the plan's scene and
    mapper are where the command was given, which was in `directory`.
    """

    work: WorkOrder
    delivery: Path
    directory: Path
    software: str
    inputs: Mapping[str, str]
    cpus: float
    upload: str = ''


@dataclass(frozen=True)
class TaskOutcome:
    """What came of a try; `delivered` if its folder is complete, `fault` if the node failed."""

    done: WorkDone = field(default_factory=WorkDone)
    delivered: bool = False
    fault: str = ''


@lru_cache(maxsize=1)
def software() -> str:
    """Return the version of this package and a digest of its sources, which versions outlive."""
    package, digest = Path(__file__).parents[2], hashlib.sha256()
    for file in sorted(package.rglob('*.py')):
        digest.update(file.relative_to(package).as_posix().encode())
        add_file(digest, file)
    return f'osmabench_ros {version()} with sources {digest.hexdigest()[:12]}'


def check_node(root: Path, expected: str) -> None:
    """Raise RunError if this node cannot take part in a matrix."""
    if software() != expected:
        raise NodeFaultError(
            f'it has {software()}, and the command {expected}; install the same everywhere'
        )
    if not is_ours(root):
        raise RunError(f'it does not see {root}; choose an --out that all nodes share')


def inputs_of(plan: RunPlan, preparation: Preparation) -> dict[str, str]:
    """Return the digests of what a run reads from outside the shared folder."""
    scene = {scene_name(plan.identity.scene_key): preparation.digest_of(plan)}
    return {**scene, **mapper_files(plan.mapper)}


PATIENCE_S = 600.0
"""How long the shared folder may be out of reach before a try counts as failed."""


def patiently(action: Callable[[], _Result], progress: Progress) -> _Result:
    """Do what a shared folder may refuse for a while, again and again; then raise its error.

    A full disk is an error at once: it does not pass, and another node may have room.
    """
    deadline_s, pause_s = time.monotonic() + PATIENCE_S, 0.25
    while True:
        try:
            return action()
        except NodeFaultError:
            raise
        except (OSError, RunError) as error:
            if _is_full_disk(error) or time.monotonic() + pause_s > deadline_s:
                raise
            progress(f'waiting for the shared folder: {error}', 0.0)
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def deliver(source: Path, target: Path) -> None:
    """Copy a folder so that it appears whole, its digest checked; nothing above it is made."""
    if target.exists():
        return
    draft = target.with_name(f'{target.name}.partial')
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    _copy(source, draft)
    if sha256_of(draft) != sha256_of(source):
        raise OSError(errno.EIO, 'a copy differs from what was written', str(draft))
    draft.rename(target)


def check_upload(url: str) -> None:
    """Raise ConfigError for an address that no upload can go to, or that holds a secret."""
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            '--upload holds a user, key or query; nodes take credentials from their environment'
        )
    _file_system(url)


def _file_system(url: str) -> tuple[Any, str]:
    with needing('--upload needs fsspec', extra('cluster')):
        from fsspec.core import url_to_fs
    with errors_as(ConfigError, f'--upload {url}', ValueError, ImportError):
        system, place = url_to_fs(url)
    return system, str(place)


def upload(folder: Path, url: str) -> None:
    """Copy a finished run to an fsspec address, a list of digests last; a whole upload stays."""
    system, place = _file_system(url)
    files = [item for item in sorted(folder.rglob('*')) if item.is_file()]
    names = {item.relative_to(folder).as_posix(): item for item in files}
    digests = {name: sha256_of(item) for name, item in names.items()}
    mark = f'{place}/{UPLOADED}'
    if system.exists(mark) and json.loads(system.cat_file(mark)) == digests:
        return
    for name, item in names.items():
        target = f'{place}/{name}'
        system.makedirs(target.rpartition('/')[0], exist_ok=True)
        system.put_file(str(item), target)
        if system.info(target)['size'] != item.stat().st_size:
            raise OSError(errno.EIO, 'an upload has another size than its file', target)
    system.pipe_file(mark, json.dumps(digests, indent=1).encode())


@lru_cache(maxsize=1)
def _kept() -> tuple[Preparation, NodeProcesses]:
    """Return what stays in this process from one task to the next: scenes and the node host."""
    return Preparation(), NodeProcesses()


def carry_out(
    order: ClusterOrder, send: Callable[[WorkNews | WorkWarning], object]
) -> TaskOutcome:
    """Make a run or a preparation on this node; an error of the node itself is its `fault`."""
    reporter = Reporter(send, period_s=1.0)
    warnings.showwarning = reporter.warn
    try:
        return _carried_out(order, reporter)
    except (OsmabenchError, OSError) as error:
        return TaskOutcome(fault=str(error))


def _carried_out(order: ClusterOrder, reporter: Reporter) -> TaskOutcome:
    plan = order.work.plan
    preparation, nodes = _kept()

    def waiting(action: Callable[[], _Result]) -> _Result:
        return patiently(action, reporter.progress)

    def uploaded(folder: Path) -> None:
        if order.upload:
            reporter.progress('uploading', 1.0)
            waiting(lambda: upload(folder, order.upload))

    waiting(lambda: _enter(order))
    if plan.report_file.exists():
        done = carried_out(order.work, preparation, nodes, reporter)
        uploaded(plan.directory)
        return TaskOutcome(done)
    here = Path(tempfile.gettempdir())
    remove_drafts(here)
    with draft_in(here) as scratch:
        own = replace(plan, root=scratch / plan.root.name)
        claim_folder(own.root)
        waiting(lambda: _fetch(plan, own))
        _check_inputs(order, inputs_of(plan, preparation))
        at_once = max(1, int(capacity_here().cpus // order.cpus))
        work = replace(order.work, plan=own, runs_at_once=at_once)
        done = carried_out(work, preparation, nodes, reporter)
        error = done.report.error if done.report else done.error
        if error and (_is_full_disk(error) or shutil.disk_usage(here).free < FULL_BELOW_BYTES):
            raise NodeFaultError(f'{os.strerror(errno.ENOSPC)}: {here}; {error}')
        if order.work.prepares and error:
            return TaskOutcome(done)
        product = own.shared_directory if order.work.prepares else own.directory
        reporter.progress('copying to the shared folder', 1.0)
        waiting(lambda: deliver(product, order.delivery))
        if done.report is not None and done.report.status is Status.COMPLETE:
            uploaded(product)
    return TaskOutcome(done, delivered=True)


def _enter(order: ClusterOrder) -> None:
    check_node(order.work.plan.root, order.software)
    os.chdir(order.directory)  # that relative paths count from


def _fetch(plan: RunPlan, own: RunPlan) -> None:
    """Copy what a run goes on from: what runs share, and a map that is not scored yet."""
    folders: list[tuple[Path, Path, Any]] = [(plan.shared_directory, own.shared_directory, None)]
    if plan.map_directory.exists():
        verdicts = shutil.ignore_patterns(FAILURE, INCOMPLETE)
        folders.append((plan.directory, own.directory, verdicts))
    for source, target, ignored in folders:
        if source.exists():
            _copy(source, target, ignored)


def _copy(source: Path, target: Path, ignored: Any = None) -> None:
    try:
        shutil.copytree(source, target, ignore=ignored, symlinks=True, dirs_exist_ok=True)
    except shutil.Error as error:  # of every file
        raise RunError(f'cannot copy {source}: {error.args[0][0][2]}') from error


def _check_inputs(order: ClusterOrder, found: Mapping[str, str]) -> None:
    other = [name for name in order.inputs if found.get(name) != order.inputs[name]]
    if other:
        raise NodeFaultError(
            f'{", ".join(other)} differs from where the command was given; copy it to every node'
        )


def _is_full_disk(error: object) -> bool:
    return os.strerror(errno.ENOSPC) in str(error)
