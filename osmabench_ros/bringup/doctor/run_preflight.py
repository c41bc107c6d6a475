"""Checks whether a run of a configuration can work here, before it is started."""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

from osmabench_ros.bringup.doctor.preflight import (
    MODULES,
    Finding,
    Severity,
    examine_scene_files,
    failed,
    nearest_folder,
    ok,
    renderer,
    warned,
)
from osmabench_ros.bringup.spec.isolation import (
    FOLDER,
    free_bytes,
    isolated_environment,
    private_domain,
    segment_bytes,
)
from osmabench_ros.bringup.spec.mapping_nodes import tf_settings
from osmabench_ros.errors import (
    ConfigError,
    MissingDependencyError,
    OsmabenchError,
    OsmabenchWarning,
)
from osmabench_ros.language.gemini import KEY_VARIABLES as GEMINI_KEYS
from osmabench_ros.language.openai import KEY_VARIABLE as OPENAI_KEY
from osmabench_ros.language.options import OPENAI_SERVER, server_address
from osmabench_ros.mappers.live_method import LiveMethod, load_live_method
from osmabench_ros.runs.config import MapperConfig, MatrixConfig
from osmabench_ros.scenes.loading import APARTMENT, scene_path

MIB = 2**20
SCENE_BYTES, RUN_BYTES = 100 * MIB, 50 * MIB
"""What ground truth and a run take; four times of what the demo takes."""

BYTES_PER_PIXEL = 13
"""Of a frame: colour 3, depth 4, classes 2, instances 4."""

OPEN_FILES = 256
MODEL_KEYS = {'gemini': GEMINI_KEYS, 'openai': (OPENAI_KEY,)}


def check_run(config: MatrixConfig, out: Path) -> None:
    """Refuse a configuration that cannot run here, and name all that is missing; warn of less."""
    findings = examine_run(config, out)
    failed = [item for item in findings if item.level is Severity.FAILED]
    if failed:
        reasons = '; '.join(f'{item.part}: {item.detail} ({item.remedy})' for item in failed)
        text = f'configuration "{config.name}" cannot run here: {reasons}'
        installed = {module.name for module in MODULES}
        missing = all(item.part in installed for item in failed)
        raise MissingDependencyError(text) if missing else ConfigError(text)
    for item in findings:
        if item.level is Severity.WARN:
            text = f'{item.part}: {item.detail} ({item.remedy})'
            warnings.warn(text, OsmabenchWarning, stacklevel=2)


def examine_run(config: MatrixConfig, out: Path) -> list[Finding]:
    """Check everything that a run of a configuration needs, in a moment."""
    looks: list[Callable[[], list[Finding]]] = [
        _modules,
        lambda: _simulator(config),
        lambda: [item for mapper in config.mappers for item in _command(mapper)],
        lambda: _scenes(config),
        lambda: _files(config),
        lambda: _model_keys(config),
        lambda: _disk(config, out),
        _domain,
        lambda: _shared_memory(config),
        _open_files,
    ]
    return [finding for look in looks for finding in look()]


def _modules() -> list[Finding]:
    findings = []
    for module in MODULES:
        if module.required and not _is_there(module.name):
            detail = f'needed for {module.purpose}, not installed'
            findings.append(failed(module.name, detail, module.remedy))
    return findings


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def _simulator(config: MatrixConfig) -> list[Finding]:
    if config.simulator.name == 'opengl':
        return [renderer()]
    if config.simulator.name == 'habitat':
        return _habitat(str(config.simulator.options.get('habitat_python', '')))
    return []


def _habitat(option: str) -> list[Finding]:
    from osmabench_ros.simulation.habitat.simulator import PYTHON_VARIABLE

    named = option or os.environ.get(PYTHON_VARIABLE, '')
    remedy = f'set {PYTHON_VARIABLE} or the option habitat_python; see docs/habitat.md'
    if not named:
        detail = 'no interpreter with Habitat-Sim is named'
    elif not os.access(Path(named).expanduser(), os.X_OK):
        detail = f'{named} is no program that can be run'
    else:
        return [ok('habitat_sim', f'interpreter {named}')]
    return [failed('habitat_sim', detail, remedy)]


def _command(mapper: MapperConfig) -> list[Finding]:
    """Check the command or stack of a mapper, and the transforms that it publishes."""
    part = f'mapper {mapper.name}'
    method = load_live_method(mapper.stack) if mapper.stack else None
    findings = _program(part, mapper) if method is None else _stack(part, method)
    if any(item.level is Severity.FAILED for item in findings):
        return findings
    return _transforms(part, mapper, method) or findings


def _transforms(part: str, mapper: MapperConfig, method: LiveMethod | None) -> list[Finding]:
    """Check whether a mapper can publish its edges of TF, and declares them consistently."""
    try:
        declared = tf_settings(mapper, method).transforms
    except ConfigError as error:
        return [failed(part, str(error), 'an edge of TF has one authority')]
    if not declared or _is_there('tf2_ros'):
        return []
    detail = f'it publishes {", ".join(declared)} on TF, and tf2_ros is not installed'
    return [failed(part, detail, 'source a ROS 2 installation with tf2_ros')]


def _program(part: str, mapper: MapperConfig) -> list[Finding]:
    """Check that the program of a command exists, and the script that it runs."""
    if not mapper.command:
        return []
    program, *rest = mapper.command
    if shutil.which(program, path=isolated_environment(0)['PATH']) is None:
        detail = f'"{program}" is no program that can be run'
        return [failed(part, detail, 'install it, source its workspace, or correct command')]
    script = rest[0] if rest and rest[0].endswith(('.py', '.sh')) else ''
    if script and not Path(script).is_file():
        remedy = f'paths in command count from where osmabench is started ({Path.cwd()})'
        return [failed(part, f'{script} is not there', remedy)]
    return [ok(part, ' '.join(mapper.command))]


def _stack(part: str, method: LiveMethod) -> list[Finding]:
    """Check that `ros2`, which starts stacks, and the package of the launch file exist."""
    if shutil.which('ros2', path=isolated_environment(0)['PATH']) is None:
        detail = f'{method.name} is started by ros2 launch, and there is no ros2'
        return [failed(part, detail, 'source a ROS 2 installation with ros2cli and launch_ros')]
    package = method.launch.package if method.launch is not None else ''
    if package and not _has_package(package):
        return [failed(part, f'the package {package} is not installed', '; '.join(method.install))]
    return [ok(part, f'{method.name} by ros2 launch')]


def _has_package(package: str) -> bool:
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    index = Path('share', 'ament_index', 'resource_index', 'packages', package)
    return any((Path(prefix) / index).is_file() for prefix in prefixes if prefix)


def _scenes(config: MatrixConfig) -> list[Finding]:
    references = dict.fromkeys(scene.reference for scene in config.scenes)
    return [examine_scene_files(scene_path(item)) for item in references if item != APARTMENT]


def _files(config: MatrixConfig) -> list[Finding]:
    findings = []
    for name, file in config.text_features.items():
        for path in (file, file.with_suffix('.json')):
            if not path.is_file() or not path.stat().st_size:
                detail = f'{path} of "{name}" is not there, or empty'
                remedy = 'correct text_features; a .npy needs its texts in a .json beside it'
                findings.append(failed('text features', detail, remedy))
    return findings


def _model_keys(config: MatrixConfig) -> list[Finding]:
    """Check that the keys of the suites' language models are set; never reads their value."""
    kinds = {
        value.partition(':')[0]
        for suite in config.suites
        for value in suite.options.values()
        if isinstance(value, str)
        and not _may_need_no_key(value, str(suite.options.get('base_url') or ''))
    }
    findings = []
    for kind in sorted(kinds & MODEL_KEYS.keys()):
        variables = MODEL_KEYS[kind]
        if not any(os.environ.get(name) for name in variables):
            detail = f'{kind} needs a key, {" or ".join(variables)} is not set'
            remedy = 'export it in the shell, or take a model without'
            findings.append(failed('language model', detail, remedy))
    return findings


def _may_need_no_key(model: str, base_url: str) -> bool:
    """Return whether the model is on the user's own server with OpenAI's chat API."""
    return model.startswith('openai:') and server_address('openai', base_url) != OPENAI_SERVER


def _disk(config: MatrixConfig, out: Path) -> list[Finding]:
    paths = len(config.seeded_scenes)
    repetitions = max(1, len(config.seeds.method))
    runs = paths * len(config.conditions) * len(config.mappers) * repetitions
    needed = paths * SCENE_BYTES + runs * RUN_BYTES
    folder = nearest_folder(out / config.name)
    free = shutil.disk_usage(folder).free
    detail = f'{free // MIB} MiB free at {folder}, {runs} runs take about {needed // MIB} MiB'
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        detail = f'{folder} is no folder that can be written to'
        return [failed('disk', detail, 'choose another --out')]
    if free < needed:
        return [failed('disk', detail, 'free some, or choose another --out')]
    return [ok('disk', detail)]


def _domain() -> list[Finding]:
    try:
        with private_domain() as domain:
            return [ok('ROS domain', f'{domain} is free')]
    except OsmabenchError as error:
        return [failed('ROS domain', str(error), 'end one of them')]


def _shared_memory(config: MatrixConfig) -> list[Finding]:
    free, segment = free_bytes(), segment_bytes()
    if free is None:
        return []
    frame = config.camera.width * config.camera.height * BYTES_PER_PIXEL
    detail = (
        f'{free / MIB:.1f} MiB free in {FOLDER}, {segment / MIB:.1f} MiB for each process, '
        f'{frame / MIB:.1f} MiB a frame'
    )
    if segment < frame:
        remedy = (
            'docker run --shm-size=512m; fastdds shm clean removes what crashed processes left; '
            'or smaller images'
        )
        detail += ': images will be slow'
        return [warned('shared memory', detail, remedy)]
    return [ok('shared memory', detail)]


def _open_files() -> list[Finding]:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
        detail = f'a process may open {soft} files, DDS and the metrics need {OPEN_FILES}'
        return [failed('open files', detail, 'ulimit -n 1024')]
    return [ok('open files', 'unlimited' if soft < 0 else f'{soft} a process')]
