"""Arguments of launch files, without launch: refuses unknown ones, and plans one run of them."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from osmabench_ros.base.files import check_folder, claim_folder
from osmabench_ros.base.progress import Progress
from osmabench_ros.base.settings import with_settings
from osmabench_ros.bringup.definition import PACKAGE
from osmabench_ros.bringup.preflight import check_config
from osmabench_ros.bringup.runner.one_run import prepare_run
from osmabench_ros.errors import ConfigError, choose
from osmabench_ros.mappers.live_method import live_method_names
from osmabench_ros.mappers.mapper import mapper_names
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.runs.config import load_config, parse_config
from osmabench_ros.runs.matrix_on_disk import write_manifest
from osmabench_ros.runs.plan import RunPlan

# Arguments that launch reads itself, whatever a file declares.
OF_LAUNCH = frozenset(
    ('emulate_tty', 'launch-prefix', 'launch-prefix-filter', 'sigkill_timeout', 'sigterm_timeout')
)


def check_argument_names(arguments: Sequence[str], declared: Sequence[str], file: str) -> None:
    """Check ``'name:=value'`` arguments of a launch file; ConfigError names the nearest."""
    if not _is_commanded(Path(file)):
        return
    for argument in arguments:
        name = argument.partition(':=')[0]
        if name not in OF_LAUNCH:
            problem = f'{Path(file).name} has no argument "{name}" ({argument})'
            choose(name, declared, ConfigError, problem)


def _is_commanded(file: Path) -> bool:
    of_package = (PACKAGE, file.name) in zip(sys.argv, sys.argv[1:], strict=False)
    return of_package or any(
        Path(text).name == file.name and Path(text).absolute() == file.absolute()
        for text in sys.argv[1:]
    )


BASE = 'single_run'
# Of a configuration, with values that are arguments of the bridge too.
SECTIONS = ('simulator', 'camera', 'trajectory', 'pacing')


def plan_single_run(values: Mapping[str, Any], out: Path, progress: Progress) -> RunPlan:
    """Plan and prepare one run in a new folder of `out`; config/single_run.yaml has the rest."""
    base = load_config(BASE)
    sections = {name: getattr(base, name) for name in SECTIONS}
    settings = with_settings(BridgeSettings(**sections), values, 'launch argument ')
    chosen = {name: getattr(settings, name).model_dump(mode='json') for name in SECTIONS}
    data = base.model_dump(mode='json') | chosen
    data['scenes'] = [settings.scene.model_dump(mode='json')]
    data['conditions'] = [values['condition']]
    mapper = _mapper(values['mapper'], values['variables']) | values['settling']
    mapper |= {'transforms': values['transforms'] or None, 'publish_tf': values['publish_tf']}
    data['mappers'] = [mapper]
    data['trajectory']['max_frames'] = values['max_frames']
    config = parse_config(data, 'launch arguments')
    preparation = check_config(config, out)
    [plan] = preparation.plans(config, out)
    plan = replace(plan, root=out / plan.identity.run_id)
    check_folder(plan.root)
    claim_folder(plan.root)
    write_manifest(plan.root, config, [plan])
    prepare_run(plan, preparation, progress)
    return plan


def _mapper(name: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry of a bundled mapper, or of a stack in config/methods/live or in a file."""
    if name in mapper_names():
        return {'name': name}
    stacks = live_method_names()
    if Path(name).suffix != '.yaml':
        problem = 'is not a mapper, a stack in config/methods/live or a .yaml file of a stack'
        choose(name, [*mapper_names(), *stacks], ConfigError, f'mapper:={name} {problem}')
    return {'name': Path(name).stem, 'stack': name, 'variables': dict(variables)}
