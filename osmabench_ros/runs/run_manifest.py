"""Manifests: the inputs of a run, and of the data that runs share.

A manifest is independent of time. Before results are used again it is compared, key by key, with
their inputs now.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from osmabench_ros.base import files
from osmabench_ros.base.configuration import version
from osmabench_ros.base.strict import read_model
from osmabench_ros.errors import RunError, warn
from osmabench_ros.runs.config import MapperConfig
from osmabench_ros.runs.evaluation import OVER_TIME, make_suites
from osmabench_ros.runs.host import describe_surroundings
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import RunReport, for_run, without_classes
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.suites.suite import PreparesQuestions
from osmabench_ros.vqa.exact.generation import GENERATOR, SUITE

# How names of such inputs begin.
TEXT_FEATURES = 'text features of '
# Fields of a scene about its place and its maker, which do not change the scene.
_PATHS = frozenset({'source', 'specification'})


def collect_run_inputs(plan: RunPlan, scene_digest: str) -> dict[str, str]:
    """Return the digests of everything outside a configuration that a run depends on."""
    found = {**collect_shared_inputs(plan, scene_digest), **mapper_files(plan.mapper)}
    for name, file in plan.config.text_features.items():
        found |= _file(f'{TEXT_FEATURES}{name}', str(file))
    return found


def collect_shared_inputs(plan: RunPlan, scene_digest: str) -> dict[str, str]:
    """Return the digests of what all runs on a path in a scene depend on."""
    found = {scene_name(plan.identity.scene_key): scene_digest}
    for name, value in _list_strings(plan.config.simulator.options):
        found |= _file(f'simulator option {name}', value)
    recorded = plan.config.trajectory.recorded
    return found | (_file('trajectory', recorded) if recorded else {})


def scene_name(key: SceneKey) -> str:
    """Return the name of a scene among the inputs."""
    return f'scene {replace(key, path_seed=None)}'


def mapper_files(mapper: MapperConfig) -> dict[str, str]:
    """Return the digests of the files named by command, stack and options of a mapper."""
    options = (value for _, value in _list_strings(mapper.options))
    found: dict[str, str] = {}
    for text in (*mapper.command, mapper.stack, *mapper.variables.values(), *options):
        found |= _file(f'mapper {mapper.name}', text)
    return found


def scene_digest(scene: Scene) -> str:
    """Return the digest of a loaded scene: its meshes, textures, classes, rooms and lights."""
    digest = hashlib.sha256()
    _update(digest, scene)
    return digest.hexdigest()


def without_home(value: Any) -> Any:
    """Return plain data with the user's home in paths shortened to ``~``."""
    if isinstance(value, str):
        home = f'{Path.home()}/'
        return f'~/{value.removeprefix(home)}' if value.startswith(home) else value
    if isinstance(value, Mapping):
        return {key: without_home(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_home(item) for item in value]
    return value


def _list_strings(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        if isinstance(value, Mapping):
            yield from _list_strings(value)
        elif isinstance(value, str):
            yield name, value


def _file(kind: str, text: str) -> dict[str, str]:
    """Return the digest of a file if `text` is the path of one."""
    try:
        path = Path(text).expanduser()
        if not path.is_file():
            return {}
        status = path.stat()
    except (OSError, RuntimeError):  # "~5 cm" is not the home of a user "5 cm"
        return {}
    digest = _hash_file(path, status.st_size, status.st_mtime_ns)
    return {f'{kind}: {without_home(text)}': digest}


@lru_cache(maxsize=256)
def _hash_file(path: Path, size: int, mtime_ns: int) -> str:
    del size, mtime_ns  # part of the key: a file that changed is read again
    digest = hashlib.sha256()
    files.add_file(digest, path)
    return digest.hexdigest()


def _update(digest: hashlib._Hash, value: Any) -> None:
    """Feed a digest dataclasses, arrays and plain values, each with its kind and size."""
    if isinstance(value, np.ndarray):
        digest.update(f'array {value.dtype.str} {value.shape} '.encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        digest.update(f'{type(value).__name__} '.encode())
        for item in dataclasses.fields(value):
            if item.name not in _PATHS:
                _update(digest, getattr(value, item.name))
    elif isinstance(value, Mapping):
        digest.update(f'mapping {len(value)} '.encode())
        for key in sorted(value, key=str):
            _update(digest, (str(key), value[key]))
    elif isinstance(value, (tuple, list)):
        digest.update(f'sequence {len(value)} '.encode())
        for entry in value:
            _update(digest, entry)
    else:
        text = value.value if isinstance(value, Enum) else value
        digest.update(f'{type(text).__name__} {text!r} '.encode())


MANIFEST = 'manifest.json'
# Folder with the pages of a report of many runs.
PAGES = 'report_pages'
SCHEMA = 'osmabench.run_manifest/1'
SHARED_SCHEMA = 'osmabench.shared_manifest/1'
# Key of a run's manifest: the folder with the data of all runs on the same scene and path.
SHARED_FOLDER = 'shared'
WARNINGS = 'warnings'
# Key of a run's manifest: digests of its files of metrics, once they are all there.
RESULTS = 'results'
# Next to the report of a run: the part of it that the report of many runs needs.
METRICS = 'figures.json'
ABSENT = 'absent'
REQUIREMENTS = 'requirements'
_SUITES, _SHARED_PREFIX = 'suites', 'shared '
# Keys of a configuration that decide path, ground truth and questions, with the scene.
_KEYS_OF_SHARED_DATA = {'camera', 'robot', 'trajectory', 'simulator'}
_WHOLE_MATRIX = {
    *('name', 'scenes', 'seeds', 'conditions', 'mappers', 'requirements', 'text_features'),
    'sweep',
}
_NOT_NOTED = 'unknown ones, as an earlier version did not note them'
_DIGEST_LENGTH, _SHOWN_OF_DIGEST, _MAX_SHOWN = 64, 8, 60
_MAX_LISTED = 5


def write_run_manifest(plan: RunPlan, scene_digest: str, warnings: Sequence[str] = ()) -> None:
    """Write manifest.json of a run with a prepared shared folder."""
    files.write_json(plan.directory / MANIFEST, describe_run(plan, scene_digest, warnings))


def describe_run(plan: RunPlan, scene_digest: str, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """Return the content of manifest.json of a run."""
    identity, config = plan.identity, config_of_run(plan)
    shared = {
        f'{_SHARED_PREFIX}{path.name}': files.sha256_of(path)
        for path in sorted(plan.shared_directory.iterdir())
        if path.name not in (files.MARKER, MANIFEST)
    }
    return {
        'schema_name': SCHEMA,
        'run_id': identity.run_id,
        'dataset': identity.scene_key.dataset,
        'scene': identity.scene_key.scene,
        'condition': identity.condition,
        'mapper': identity.mapper,
        'simulator': identity.simulator,
        'pacing': plan.pacing.value,
        'speed_factor': identity.speed_factor,
        'seeds': {
            'scene': plan.scene.seed,
            'path and questions': plan.scene.seed_of_path,
            'mapper': plan.method_seed,
        },
        SHARED_FOLDER: plan.shared_directory.name,
        WARNINGS: list(warnings),
        'config_sha256': files.sha256_of_data(config),
        'config': config,
        'inputs': {**collect_run_inputs(plan, scene_digest), **shared},
        **describe_surroundings(identity.simulator),
    }


def config_of_run(plan: RunPlan) -> dict[str, Any]:
    """Return the part of the configuration that concerns a run."""
    config = plan.config
    requirements = for_run(config.requirements, plan.identity)
    found: dict[str, Any] = {
        **config.model_dump(mode='json', exclude=_WHOLE_MATRIX),
        'scene': plan.scene.model_dump(mode='json'),
        'condition': plan.condition.model_dump(mode='json'),
        'mapper': plan.mapper.model_dump(mode='json', exclude={'resources'}),
        REQUIREMENTS: [item.model_dump(mode='json') for item in requirements],
    }
    return dict(without_home(found))


def describe_shared(plan: RunPlan, scene_digest: str) -> dict[str, Any]:
    """Return the content of manifest.json of the folder that the runs on a path share."""
    config = plan.config
    suites = zip(config.suites, make_suites(config.suites), strict=True)
    asking = [item for item, suite in suites if isinstance(suite, PreparesQuestions)]
    found: dict[str, Any] = {
        **config.model_dump(mode='json', include=_KEYS_OF_SHARED_DATA),
        'scene': plan.scene.model_dump(mode='json'),
        _SUITES: [item.model_dump(mode='json') for item in asking],
    }
    return {
        'schema_name': SHARED_SCHEMA,
        'config': without_home(found),
        'inputs': collect_shared_inputs(plan, scene_digest),
        'versions': {'osmabench_ros': version(), SUITE: GENERATOR},
    }


def read_manifest(directory: Path) -> Mapping[str, Any]:
    """Return the manifest of a run or of what runs share, empty if there is none yet."""
    manifest = directory / MANIFEST
    return read_model(dict[str, Any], manifest) if manifest.exists() else {}


def add_warning(plan: RunPlan, text: str) -> None:
    """Add a warning to the manifest of a run, for its report."""
    known = read_manifest(plan.directory)
    found = dict.fromkeys((*known.get(WARNINGS, ()), text))
    files.write_json(plan.directory / MANIFEST, {**known, WARNINGS: list(found)})


def read_warnings(plans: Sequence[RunPlan]) -> tuple[str, ...]:
    """Return the warnings in the manifests of runs, each once."""
    found = [text for plan in plans for text in read_manifest(plan.directory).get(WARNINGS, ())]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Difference:
    """A key that had another value when results were made."""

    key: str
    before: Any
    now: Any

    @property
    def adds_scores(self) -> bool:
        """Whether it is one more suite, one more file for suites, or another threshold."""
        added = self.before is ABSENT and self.key.startswith((f'{_SUITES}.', TEXT_FEATURES))
        return added or self.key == REQUIREMENTS

    def __str__(self) -> str:
        pairs = enumerate(zip(str(self.before), str(self.now), strict=False))
        first = next((place for place, (old, new) in pairs if old != new), 0)
        return f'{self.key}: {_show_value(self.before, first)} -> {_show_value(self.now, first)}'


def compare_configs(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Return the keys in which two configurations of a run differ."""
    return () if before == now else _compare(_list_keys(before), _list_keys(now))


def _compare(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Difference, ...]:
    pairs = ((key, before.get(key, ABSENT), now.get(key, ABSENT)) for key in {**before, **now})
    return tuple(Difference(*pair) for pair in pairs if pair[1] != pair[2])


def _list_values(manifest: Mapping[str, Any]) -> dict[str, Any]:
    digests = manifest['inputs'].items()
    return {
        **_list_keys(manifest['config']),
        # The files that runs share have a manifest too.
        **{name: digest for name, digest in digests if not name.startswith(_SHARED_PREFIX)},
        **{
            f'version of {name}': manifest['versions'].get(name, ABSENT)
            for name in ('osmabench_ros', SUITE)
        },
    }


def _list_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    # The name of a model identifies it; the address of its server may be corrected.
    suites = {
        item['name']: json.dumps(
            {key: value for key, value in item['options'].items() if key != 'base_url'},
            sort_keys=True,
        )
        for item in config[_SUITES]
    }
    return dict(_flatten({**config, _SUITES: suites}))


def _flatten(value: Any, key: str = '') -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flatten(item, f'{key}.{name}' if key else name)
    else:
        yield key, value


def _show_value(value: Any, first: int) -> str:
    """Return a value as text, of a long one the part around its `first` difference."""
    text = str(value)
    if len(text) == _DIGEST_LENGTH:
        return text[:_SHOWN_OF_DIGEST]
    start = max(0, min(first - _MAX_SHOWN // 2, len(text) - _MAX_SHOWN))
    end = start + _MAX_SHOWN
    return f'{"…" * (start > 0)}{text[start:end]}{"…" * (end < len(text))}'


@dataclass(frozen=True)
class ExtraWork:
    """The work that a configuration with more in it adds to the results of one with less.

    `scenes` holds one run for each shared folder that lacks questions; `runs` those with maps that
    are scored again, and why.
    """

    scenes: tuple[RunPlan, ...] = ()
    runs: tuple[tuple[RunPlan, tuple[Difference, ...]], ...] = ()


def find_extra_work(plans: Iterable[RunPlan], digest_of: Callable[[RunPlan], str]) -> ExtraWork:
    """Compare noted inputs of results with today's, and return the work that is left.

    `digest_of` gives the digest of the scene of a run. Raises RunError, key by key, if maps or
    scores were made with other settings or from other inputs.
    """
    plans = list(plans)
    refused: dict[str, list[Path]] = {}

    def compare(folder: Path, now: Mapping[str, Any]) -> tuple[Difference, ...]:
        """Return the differences of a folder, and collect those that are refused."""
        noted = read_manifest(folder)
        if not {'config', 'inputs', 'versions'} <= noted.keys():
            refused.setdefault(_NOT_NOTED, []).append(folder)
            return ()
        # As JSON reads it back: a tuple is a list there.
        found = _compare(_list_values(noted), _list_values(json.loads(json.dumps(now))))
        for item in found:
            if not item.adds_scores:
                refused.setdefault(str(item), []).append(folder)
        return found

    def describe_inputs(plan: RunPlan) -> dict[str, Any]:
        inputs = collect_run_inputs(plan, digest_of(plan))
        versions = {'osmabench_ros': version()}
        return {'config': config_of_run(plan), 'inputs': inputs, 'versions': versions}

    by_scene = {plan.shared_directory: plan for plan in reversed(plans)}
    scenes = [
        plan
        for folder, plan in by_scene.items()
        if folder.exists() and compare(folder, describe_shared(plan, digest_of(plan)))
    ]
    runs = [
        (plan, found)
        for plan in plans
        if (plan.map_directory.exists() or plan.report_file.exists())
        and (found := compare(plan.directory, describe_inputs(plan)))
    ]
    if refused:
        raise _describe_refusal(refused)
    return ExtraWork(tuple(scenes), tuple(runs))


def _describe_refusal(refused: Mapping[str, Sequence[Path]]) -> RunError:
    """Return the error that names the differences, and folders with results that have them."""
    first = next(iter(refused.values()))[0]
    folders = {folder for found in refused.values() for folder in found}
    others = f' and {len(folders) - 1} more' if len(folders) > 1 else ''
    rest = len(refused) - _MAX_LISTED
    more = f'; and {rest} more' if rest > 0 else ''
    return RunError(
        f'the results in {first}{others} were made with other settings: '
        f'{"; ".join(list(refused)[:_MAX_LISTED])}{more}. Start over with --fresh, or '
        'choose another --out or name'
    )


def forget_scores(plan: RunPlan) -> None:
    """Delete the report of a run, so that its map is scored again; answers are written over."""
    for name in (plan.report_file.name, OVER_TIME, METRICS):
        files.discard(plan.directory / name)


def finish_run(plan: RunPlan) -> None:
    """Record the digests of a run's results in its manifest, and its metrics over all classes."""
    manifest = plan.directory / MANIFEST
    before = read_model(dict[str, Any], manifest)
    written = (plan.report_file, plan.directory / OVER_TIME)
    results = {file.name: files.sha256_of(file) for file in written if file.exists()}
    if before.get(RESULTS) != results:
        files.write_json(manifest, {**before, RESULTS: results})
    if plan.report_file.exists() and not has_metrics(plan.directory):
        report = read_model(RunReport, plan.report_file)
        files.write_text(plan.directory / METRICS, without_classes(report).model_dump_json())


def has_metrics(directory: Path) -> bool:
    """Return whether the metrics of a run are noted, and its report was not written since."""
    noted = directory / METRICS
    report = directory / 'report.json'
    return noted.is_file() and noted.stat().st_mtime_ns >= report.stat().st_mtime_ns


def read_finished(plan: RunPlan) -> RunReport:
    """Return the report of a run that is done; RunError names all files that changed since."""
    recorded = read_manifest(plan.directory).get(RESULTS, {})
    changed = [name for name in recorded if _digest(plan.directory / name) != recorded[name]]
    if not changed:
        report = read_model(RunReport, plan.report_file)
        sources = {
            'map': plan.map_directory,
            'ground_truth': plan.ground_truth_directory,
            'questions': plan.questions_file,
        }
        changed = [
            str(path)
            for name, path in sources.items()
            if name in report.hashes and _digest(path) != report.hashes[name]
        ]
    if changed:
        raise RunError(
            f'run {plan.identity.run_id} is done, but has changed since: {", ".join(changed)}; '
            f'restore it in {plan.directory}, or start over with --fresh'
        )
    return report


def _digest(path: Path) -> str:
    """Return the digest of a file or folder, empty if it is gone."""
    return files.sha256_of(path) if path.exists() else ''


@contextmanager
def lock_folder(root: Path) -> Iterator[None]:
    """Claim a folder and keep it from other processes until the block, or this process, ends."""
    files.claim_folder(root)
    with lock_results(root):
        yield


@contextmanager
def lock_results(path: Path) -> Iterator[None]:
    """Lock the folder of results that contains a path, if there is one."""
    root = files.find_root(path)
    if root is None:
        yield
        return
    with ExitStack() as resources:
        with files.wrap_os_errors(root):
            marker = resources.enter_context((root / files.MARKER).open('r+'))
        _lock(marker, root)
        files.remove_drafts(root, below=True)
        yield


def _lock(marker: TextIO, root: Path) -> None:
    try:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            text = 'is in use by another osmabench; wait for it to end, or choose another --out'
            raise RunError(f'{root} {text}') from error
        warn(f'{root} cannot be locked ({error.strerror}); see to it that no other works there')


def is_locked(root: Path) -> bool:
    """Return whether another process works in a folder of results."""
    if not files.is_ours(root):
        return False
    with files.wrap_os_errors(root, 'cannot read'), (root / files.MARKER).open() as marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
    return False
