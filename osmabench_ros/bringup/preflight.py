"""Checks the software, the data sets and whether a configuration can run; names remedies.

Findings of all checks of the doctor are here, and the tables of checks that lead to them.
"""

import importlib
import importlib.util
import os
import platform
import resource
import shutil
import string
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, StrictUndefined
from jinja2.environment import TemplateExpression

from osmabench_ros import errors
from osmabench_ros.base import configuration
from osmabench_ros.base.configuration import extra
from osmabench_ros.base.documents import read_json, read_yaml
from osmabench_ros.bringup import isolation
from osmabench_ros.bringup.definition import tf_settings
from osmabench_ros.language.gemini import GeminiModel
from osmabench_ros.language.openai import OpenAIModel
from osmabench_ros.language.settings import OPENAI_SERVER, server_address
from osmabench_ros.mappers.live_method import LiveMethod, load_live_method
from osmabench_ros.runs.config import MapperConfig, MatrixConfig
from osmabench_ros.runs.host import opengl_renderer
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.scenes.loading import APARTMENT, MANIFEST, REPLICA_INFO, SPECIFIED, locate_scene
from osmabench_ros.scenes.specification import read_specification

_Value = TypeVar('_Value')

# Key of a row with an expression of Jinja over the values of a check; texts have more of them.
CONDITION = 'when'


class Severity(str, Enum):
    """Severity of a finding."""

    OK = 'ok'
    ABSENT = 'absent'
    WARN = 'warn'
    FAILED = 'failed'


@dataclass(frozen=True)
class Finding:
    """One finding and its remedy, '' if there is nothing to do.

    ABSENT if an optional part is missing, WARN if values may suffer, FAILED if no run is
    possible.
    """

    part: str
    level: Severity
    detail: str
    remedy: str = ''

    def __str__(self) -> str:
        return f'{self.part}: {self.detail} ({self.remedy})'


class CheckTables:
    """Tables of checks from a YAML file of the package: condition, severity, text, remedy."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @cached_property
    def rows(self) -> dict[str, dict[str, dict[str, str]]]:
        """The rows by table and name."""
        tables: dict[str, dict[str, dict[str, str]]] = read_yaml(self._file, errors.ConfigError)
        return tables

    def find_all(self, table: str, part: str, **values: object) -> list[Finding]:
        """Return a finding for every row with a condition that holds, else for those without."""
        return [_make_finding(row, part, values) for row in self._select_rows(table, values)]

    def find_first(self, table: str, part: str, **values: object) -> list[Finding]:
        """Return a finding for the first row that holds."""
        return [_make_finding(row, part, values) for row in self._select_rows(table, values)[:1]]

    def _select_rows(self, table: str, values: dict[str, object]) -> list[dict[str, str]]:
        rows = self.rows[table].values()
        found = [row for row in rows if CONDITION in row and _compile(row[CONDITION])(**values)]
        return found or [row for row in rows if CONDITION not in row]

    def find_one(self, table: str, part: str, **values: object) -> Finding:
        """Return the finding for the first row of a table of which one always holds."""
        return self.find_first(table, part, **values)[0]


@cache
def _compile(condition: str) -> TemplateExpression:
    environment = Environment(undefined=StrictUndefined, autoescape=True)
    return environment.compile_expression(condition, undefined_to_none=False)


class _Filler(string.Formatter):
    """Fills the fields of a text, which are expressions of Jinja."""

    def get_field(self, field_name: str, _args: Any, kwargs: Any) -> tuple[Any, str]:
        return _compile(field_name)(**kwargs), field_name


def _make_finding(row: dict[str, str], part: str, values: dict[str, object]) -> Finding:
    [level] = row.keys() - {CONDITION, 'remedy'}
    detail, remedy = (_Filler().format(row.get(key, ''), **values) for key in (level, 'remedy'))
    return Finding(part, Severity(level), detail, remedy)


def attempt(read: Callable[[], _Value]) -> tuple[_Value | None, Exception | None]:
    """Return what `read` returns, or the error that it ends with."""
    try:
        return read(), None
    except (errors.OsmabenchError, ImportError) as error:
        return None, error


CHECKS = CheckTables(Path(__file__).with_name('checks.yaml'))
KNOWN = read_yaml(Path(__file__).with_name('known.yaml'), errors.ConfigError)

DATA_VARIABLE = 'OSMABENCH_DATA'
LFS_POINTER = b'version https://git-lfs'


DATA_SETS: list[dict[str, str]] = KNOWN['data_sets']


def data_folders() -> list[Path]:
    """Return where data sets are looked for: $OSMABENCH_DATA, else ./data and ~/data."""
    named = os.environ.get(DATA_VARIABLE)
    return [Path(named).expanduser()] if named else [Path('data'), Path.home() / 'data']


def find_data_set(data_set: Mapping[str, str], folders: Sequence[Path]) -> Finding:
    """Look for a data set in folders, in order; data sets are always optional."""
    configs = (found for folder in folders for found in sorted(folder.glob(data_set['config'])))
    config = next(configs, None)
    files = sorted(config.parent.glob(data_set['evidence'])) if config else []
    return CHECKS.find_one(
        'data_set',
        data_set['name'],
        data_set=data_set,
        config=config,
        files=files,
        pointer=next((file for file in files if _read_start(file) == LFS_POINTER), None),
        places=' or '.join(str(folder) for folder in folders),
        variable=DATA_VARIABLE,
    )


def _read_start(file: Path) -> bytes:
    with (
        errors.errors_as(errors.SceneError, f'{file} cannot be read', OSError),
        file.open('rb') as opened,
    ):
        return opened.read(len(LFS_POINTER))


# How long files may be looked at; a data set of a hundred scenes is not looked at in whole.
LOOK_S = 0.4

MAGIC = {'.glb': b'glTF', '.png': b'\x89PNG', '.jpg': b'\xff\xd8'}


def examine_scene_files(reference: Path) -> Finding:
    """Check the files of a scene, in every form that `load_scene` reads."""
    path = reference.expanduser()
    named = (path, path / MANIFEST, path / REPLICA_INFO)
    config = next((file for file in named if file.is_file()), None)
    specified = path.suffix in SPECIFIED
    look: Callable[[Path], object] = read_specification if specified else _find_broken_files
    found, error = attempt(lambda: look(config)) if config is not None else (None, None)
    return CHECKS.find_one(
        'scene',
        f'scene {reference.name}',
        path=path,
        config=config,
        specified=specified,
        error=error,
        faults=found if isinstance(found, list) else (),
        reference=reference,
    )


def _find_broken_files(config: Path) -> list[str]:
    """Return why models and images of a data set cannot be used, by their headers."""
    read_json(config, errors.SceneError)
    found = []
    end = time.monotonic() + LOOK_S
    for file in sorted(config.parent.rglob('*')):
        magic = MAGIC.get(file.suffix.lower())
        if magic is None or not file.is_file() or time.monotonic() > end:
            continue
        start = _read_start(file)
        if start == LFS_POINTER:
            found.append(f'{file} is a pointer of git-lfs, not the file (git lfs pull)')
        elif not start.startswith(magic):
            found.append(f'{file} is damaged: not a {file.suffix}')
    return found


@dataclass(frozen=True)
class _Module:
    """A module, with a sentence, an extra or a package of ROS as remedy.

    Modules without a remedy are in requirements/beside_ros.txt.
    """

    name: str
    purpose: str
    sentence: str = ''
    extra: str = ''
    of_ros: str = ''
    required: bool = False

    @property
    def remedy(self) -> str:
        if self.of_ros:
            return _make_ros_remedy(self.of_ros)
        if self.extra:
            return extra(self.extra)
        return self.sentence or _make_pip_remedy()


MODULES = tuple(_Module(**row) for row in KNOWN['modules'])


def examine(out: Path | None = None) -> list[Finding]:
    """Check everything a run needs or could use, and the disk of `out`, for results."""
    findings = [
        Finding('python', Severity.OK, f'{platform.python_version()} on {platform.platform()}')
    ]
    unmet = ', '.join(configuration.unmet_requirements())
    files = {'pip': _make_pip_remedy(), 'file': configuration.requirements_file()}
    findings += CHECKS.find_all('packages', 'python packages', unmet=unmet, **files)
    findings += [_check_module(module) for module in MODULES]
    findings += [renderer(), _check_habitat(), _check_gpu()]
    found = os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET (the default of ROS)')
    findings += CHECKS.find_all('discovery', 'discovery', found=found)
    findings.append(_check_space('free_disk', out or Path()))
    return findings + [find_data_set(item, data_folders()) for item in DATA_SETS]


def _make_pip_remedy() -> str:
    return f'pip install -r {configuration.requirements_file()} in a virtual environment'


def _make_ros_remedy(package: str) -> str:
    """Return how the ROS that is used here gets a package."""
    ros = importlib.util.find_spec('rclpy')
    distro = os.environ.get('ROS_DISTRO', 'jazzy')
    if ros is None or not Path(str(ros.origin)).is_relative_to(sys.prefix):
        return f'sudo apt install ros-{distro}-{package}'
    if (Path(sys.prefix) / 'conda-meta').is_dir():
        return f'conda install ros-{distro}-{package}'
    return 'not with ROS from PyPI, as make env installs it: for this, see docs/ros2.md'


def _check_module(module: _Module) -> Finding:
    found, error = attempt(lambda: importlib.import_module(module.name))
    distribution = module.name.split('.')[0]
    version = configuration.installed(distribution) or getattr(found, '__version__', '')
    return CHECKS.find_one(
        'module', module.name, module=module, error=error, version=f'{version} ' if version else ''
    )


def renderer() -> Finding:
    """Return whether OpenGL can render here, and by what."""
    name, error = attempt(opengl_renderer)
    return CHECKS.find_one('renderer', 'OpenGL', error=error, name=name)


def _check_habitat() -> Finding:
    from osmabench_ros.simulation.habitat.simulator import render_first_frame

    found, error = attempt(render_first_frame)
    name, took_s = found or ('', 0.0)
    return CHECKS.find_one(
        'habitat',
        'habitat_sim',
        missing=isinstance(error, errors.MissingDependencyError),
        error=error,
        name=name,
        took_s=took_s,
    )


def _check_gpu() -> Finding:
    torch, _ = attempt(lambda: importlib.import_module('torch'))
    return CHECKS.find_one('gpu', 'GPU', torch=torch)


def _check_space(table: str, path: Path, **values: int) -> Finding:
    """Check the disk of a path, or of the nearest parent that exists."""
    folder = next(item for item in (path.absolute(), *path.absolute().parents) if item.exists())
    writable = folder.is_dir() and os.access(folder, os.W_OK)
    free = shutil.disk_usage(folder).free / MIB
    values |= {'free': round(free), 'writable': writable}
    return CHECKS.find_one(table, 'disk', folder=folder, free_gib=free / 1024, **values)


MIB = 2**20
# Sizes of ground truth and of a run; four times the sizes in the demo.
SCENE_BYTES, RUN_BYTES = 100 * MIB, 50 * MIB

# Of a frame: colour 3, depth 4, classes 2, instances 4.
BYTES_PER_PIXEL = 13

MODEL_KEYS = {model.kind: model.key_variables for model in (GeminiModel, OpenAIModel)}


def check_config(config: MatrixConfig, out: Path) -> Preparation:
    """Refuse a configuration with unknown names, or that cannot run here."""
    preparation = Preparation()
    preparation.check_names(config)
    check_run(config, out)
    preparation.check_mappers(config)
    return preparation


def check_run(config: MatrixConfig, out: Path) -> None:
    """Refuse a configuration that cannot run here, and name all that is missing; warn of less."""
    findings = examine_run(config, out)
    failed = [item for item in findings if item.level is Severity.FAILED]
    if failed:
        text = f'configuration "{config.name}" cannot run here: {"; ".join(map(str, failed))}'
        modules = {module.name for module in MODULES}
        missing = all(item.part in modules for item in failed)
        raise errors.MissingDependencyError(text) if missing else errors.ConfigError(text)
    for item in findings:
        if item.level is Severity.WARN:
            errors.warn(str(item))


def examine_run(config: MatrixConfig, out: Path) -> list[Finding]:
    """Check everything that a run of a configuration needs, in a moment."""
    references = dict.fromkeys(scene.reference for scene in config.scenes)
    return [
        *_check_modules(),
        *_check_simulator(config),
        *(item for mapper in config.mappers for item in _check_mapper(mapper)),
        *(examine_scene_files(locate_scene(item)) for item in references if item != APARTMENT),
        *_check_text_features(config),
        *_check_model_keys(config),
        _check_disk(config, out),
        *_check_shared_memory(config),
        _check_open_files(),
    ]


def _check_modules() -> Iterator[Finding]:
    for item in MODULES:
        missing = item.required and not _is_there(item.name)
        yield from CHECKS.find_all('needed_module', item.name, module=item, missing=missing)


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def _check_simulator(config: MatrixConfig) -> list[Finding]:
    if config.simulator.name == 'opengl':
        return [renderer()]
    if config.simulator.name != 'habitat':
        return []
    from osmabench_ros.simulation.habitat.simulator import PYTHON_VARIABLE

    option = str(config.simulator.options.get('habitat_python', ''))
    named = option or os.environ.get(PYTHON_VARIABLE, '')
    return CHECKS.find_first(
        'interpreter',
        'habitat_sim',
        named=named,
        runnable=os.access(Path(named).expanduser(), os.X_OK),
        variable=PYTHON_VARIABLE,
    )


def _check_mapper(mapper: MapperConfig) -> list[Finding]:
    """Check the command or stack of a mapper, and the transforms that it publishes."""
    part = f'mapper {mapper.name}'
    method = load_live_method(mapper.stack) if mapper.stack else None
    findings = _check_command(part, mapper) if method is None else _check_stack(part, method)
    if any(item.level is Severity.FAILED for item in findings):
        return findings
    settings, contradiction = attempt(lambda: tf_settings(mapper, method))
    declared = ', '.join(settings.transforms) if settings else ''
    transforms = CHECKS.find_first(
        'transforms',
        part,
        contradiction=contradiction,
        declared=declared,
        has_tf2=_is_there('tf2_ros'),
    )
    return transforms or findings


def _check_command(part: str, mapper: MapperConfig) -> list[Finding]:
    """Check that the program of a command exists, and the script that it runs."""
    if not mapper.command:
        return []
    program, *rest = mapper.command
    script = rest[0] if rest and rest[0].endswith(('.py', '.sh')) else ''
    return CHECKS.find_first(
        'command',
        part,
        mapper=mapper,
        found=shutil.which(program, path=isolation.make_isolated_environment(0)['PATH']),
        script=script,
        missing_script=script and not Path(script).is_file(),
        here=Path.cwd(),
    )


def _check_stack(part: str, method: LiveMethod) -> list[Finding]:
    """Check that `ros2`, which starts stacks, and the package of the launch file exist."""
    package = method.launch.package if method.launch is not None else ''
    return CHECKS.find_first(
        'stack',
        part,
        no_ros2=shutil.which('ros2', path=isolation.make_isolated_environment(0)['PATH']) is None,
        no_package=package and not _has_package(package),
        method=method,
    )


def _has_package(package: str) -> bool:
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    index = Path('share', 'ament_index', 'resource_index', 'packages', package)
    return any((Path(prefix) / index).is_file() for prefix in prefixes if prefix)


def _check_text_features(config: MatrixConfig) -> Iterator[Finding]:
    for name, file in config.text_features.items():
        for path in (file, file.with_suffix('.json')):
            values = {'missing': not path.is_file() or not path.stat().st_size, 'path': path}
            yield from CHECKS.find_all('text_features', 'text features', name=name, **values)


def _check_model_keys(config: MatrixConfig) -> Iterator[Finding]:
    """Check that the keys of the suites' language models are set; never reads their value."""
    kinds = {
        value.partition(':')[0]
        for suite in config.suites
        for value in suite.options.values()
        if isinstance(value, str)
        and not _is_own_server(value, str(suite.options.get('base_url') or ''))
    }
    for kind in sorted(kinds & MODEL_KEYS.keys()):
        names = MODEL_KEYS[kind]
        values = {'not_set': not any(map(os.environ.get, names)), 'kind': kind, 'variables': names}
        yield from CHECKS.find_all('model_key', 'language model', **values)


def _is_own_server(model: str, base_url: str) -> bool:
    """Return whether the model is on the user's own server with OpenAI's chat API."""
    return model.startswith('openai:') and server_address('openai', base_url) != OPENAI_SERVER


def _check_disk(config: MatrixConfig, out: Path) -> Finding:
    paths = len(config.seeded_scenes)
    repetitions = max(1, len(config.seeds.method))
    runs = paths * len(config.conditions) * len(config.mappers) * repetitions
    needed = paths * SCENE_BYTES + runs * RUN_BYTES
    return _check_space('disk', out / config.name, needed=needed // MIB, runs=runs)


def _check_shared_memory(config: MatrixConfig) -> list[Finding]:
    free = isolation.free_bytes()
    segment = isolation.segment_bytes()
    if free is None:
        return []
    frame = config.camera.width * config.camera.height * BYTES_PER_PIXEL
    sizes = {'free_mib': free / MIB, 'segment_mib': segment / MIB, 'frame_mib': frame / MIB}
    return CHECKS.find_all('shared_memory', 'shared memory', folder=isolation.FOLDER, **sizes)


def _check_open_files() -> Finding:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CHECKS.find_one('open_files', 'open files', soft=soft)
