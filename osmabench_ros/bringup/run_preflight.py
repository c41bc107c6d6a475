"""Checks whether a run of a configuration can work here, before it is started."""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import warnings
from pathlib import Path

from osmabench_ros.bringup.finding import Finding, Severity, attempt
from osmabench_ros.bringup.preflight import (
    CHECKS,
    MODULES,
    examine_scene_files,
    nearest_folder,
    renderer,
)
from osmabench_ros.bringup.spec import isolation
from osmabench_ros.bringup.spec.mapping_nodes import tf_settings
from osmabench_ros.errors import ConfigError, MissingDependencyError, OsmabenchWarning
from osmabench_ros.language.gemini import KEY_VARIABLES as GEMINI_KEYS
from osmabench_ros.language.openai import KEY_VARIABLE as OPENAI_KEY
from osmabench_ros.language.settings import OPENAI_SERVER, server_address
from osmabench_ros.mappers.live_method import LiveMethod, load_live_method
from osmabench_ros.runs.config import MapperConfig, MatrixConfig
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.scenes.loading import APARTMENT, locate_scene

MIB = 2**20
SCENE_BYTES, RUN_BYTES = 100 * MIB, 50 * MIB
"""Sizes of ground truth and of a run; four times the sizes in the demo."""

BYTES_PER_PIXEL = 13
"""Of a frame: colour 3, depth 4, classes 2, instances 4."""

MODEL_KEYS = {'gemini': GEMINI_KEYS, 'openai': (OPENAI_KEY,)}


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
        reasons = '; '.join(f'{item.part}: {item.detail} ({item.remedy})' for item in failed)
        text = f'configuration "{config.name}" cannot run here: {reasons}'
        modules = {module.name for module in MODULES}
        missing = all(item.part in modules for item in failed)
        raise MissingDependencyError(text) if missing else ConfigError(text)
    for item in findings:
        if item.level is Severity.WARN:
            text = f'{item.part}: {item.detail} ({item.remedy})'
            warnings.warn(text, OsmabenchWarning, stacklevel=2)


def examine_run(config: MatrixConfig, out: Path) -> list[Finding]:
    """Check everything that a run of a configuration needs, in a moment."""
    references = dict.fromkeys(scene.reference for scene in config.scenes)
    return [
        *_check_modules(),
        *_simulator(config),
        *(item for mapper in config.mappers for item in _mapper(mapper)),
        *(examine_scene_files(locate_scene(item)) for item in references if item != APARTMENT),
        *_check_text_features(config),
        *_check_model_keys(config),
        _disk(config, out),
        *_check_shared_memory(config),
        _open_files(),
    ]


def _check_modules() -> list[Finding]:
    return [
        finding
        for module in MODULES
        if module.required
        for finding in CHECKS.find_all(
            'needed_module',
            module.name,
            module=module,
            missing=not _is_there(module.name),
        )
    ]


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def _simulator(config: MatrixConfig) -> list[Finding]:
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


def _mapper(mapper: MapperConfig) -> list[Finding]:
    """Check the command or stack of a mapper, and the transforms that it publishes."""
    part = f'mapper {mapper.name}'
    method = load_live_method(mapper.stack) if mapper.stack else None
    findings = _check_command(part, mapper) if method is None else _stack(part, method)
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
        program=program,
        found=shutil.which(program, path=isolation.make_isolated_environment(0)['PATH']),
        script=script,
        missing_script=script and not Path(script).is_file(),
        command=' '.join(mapper.command),
        here=Path.cwd(),
    )


def _stack(part: str, method: LiveMethod) -> list[Finding]:
    """Check that `ros2`, which starts stacks, and the package of the launch file exist."""
    package = method.launch.package if method.launch is not None else ''
    return CHECKS.find_first(
        'stack',
        part,
        no_ros2=shutil.which('ros2', path=isolation.make_isolated_environment(0)['PATH']) is None,
        no_package=package and not _has_package(package),
        method=method,
        package=package,
        install='; '.join(method.install),
    )


def _has_package(package: str) -> bool:
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    index = Path('share', 'ament_index', 'resource_index', 'packages', package)
    return any((Path(prefix) / index).is_file() for prefix in prefixes if prefix)


def _check_text_features(config: MatrixConfig) -> list[Finding]:
    return [
        finding
        for name, file in config.text_features.items()
        for path in (file, file.with_suffix('.json'))
        for finding in CHECKS.find_all(
            'text_features',
            'text features',
            missing=not path.is_file() or not path.stat().st_size,
            path=path,
            name=name,
        )
    ]


def _check_model_keys(config: MatrixConfig) -> list[Finding]:
    """Check that the keys of the suites' language models are set; never reads their value."""
    kinds = {
        value.partition(':')[0]
        for suite in config.suites
        for value in suite.options.values()
        if isinstance(value, str)
        and not _is_own_server(value, str(suite.options.get('base_url') or ''))
    }
    return [
        finding
        for kind in sorted(kinds & MODEL_KEYS.keys())
        for finding in CHECKS.find_all(
            'model_key',
            'language model',
            not_set=not any(os.environ.get(name) for name in MODEL_KEYS[kind]),
            kind=kind,
            variables=' or '.join(MODEL_KEYS[kind]),
        )
    ]


def _is_own_server(model: str, base_url: str) -> bool:
    """Return whether the model is on the user's own server with OpenAI's chat API."""
    return model.startswith('openai:') and server_address('openai', base_url) != OPENAI_SERVER


def _disk(config: MatrixConfig, out: Path) -> Finding:
    paths = len(config.seeded_scenes)
    repetitions = max(1, len(config.seeds.method))
    runs = paths * len(config.conditions) * len(config.mappers) * repetitions
    needed = paths * SCENE_BYTES + runs * RUN_BYTES
    folder = nearest_folder(out / config.name)
    free = shutil.disk_usage(folder).free
    return CHECKS.find_one(
        'disk',
        'disk',
        folder=folder,
        writable=folder.is_dir() and os.access(folder, os.W_OK),
        free=free // MIB,
        needed=needed // MIB,
        runs=runs,
    )


def _check_shared_memory(config: MatrixConfig) -> list[Finding]:
    free, segment = isolation.free_bytes(), isolation.segment_bytes()
    if free is None:
        return []
    frame = config.camera.width * config.camera.height * BYTES_PER_PIXEL
    return CHECKS.find_all(
        'shared_memory',
        'shared memory',
        folder=isolation.FOLDER,
        free_mib=free / MIB,
        segment_mib=segment / MIB,
        frame_mib=frame / MIB,
    )


def _open_files() -> Finding:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 'unlimited' if soft == resource.RLIM_INFINITY else f'{soft} per process'
    return CHECKS.find_one('open_files', 'open files', soft=soft, limit=limit)
