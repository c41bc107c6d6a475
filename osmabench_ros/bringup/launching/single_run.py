"""Plans one run from launch arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from osmabench_ros.base.files import check_folder, claim_folder, write_text
from osmabench_ros.base.progress import Progress
from osmabench_ros.bringup.doctor.run_preflight import check_run
from osmabench_ros.errors import ConfigError, choose
from osmabench_ros.mappers.live_method import live_method_names
from osmabench_ros.mappers.mapper import mapper_names
from osmabench_ros.runs.config import load_config, parse_config
from osmabench_ros.runs.inputs import collect_inputs
from osmabench_ros.runs.matrix_on_disk import write_manifest
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import Preparation
from osmabench_ros.runs.prepare.run_warnings import run_warnings
from osmabench_ros.runs.run_manifest import write_run_manifest
from osmabench_ros.simulation.conditions import load_condition

BASE = 'single_run'
CONDITIONS_FOLDER = 'conditions'


def plan_single_run(values: Mapping[str, Any], out: Path, progress: Progress) -> RunPlan:
    """Plan and prepare one run in a new folder of `out`; config/single_run.yaml has the rest."""
    data = load_config(BASE).model_dump(mode='json')
    data['scenes'] = [
        {'reference': values['scene'], 'scene': values['scene_name'], 'seed': values['seed']}
    ]
    data['conditions'] = [condition_at(values['condition'], values['velocity'], out)]
    mapper = _mapper(values['mapper'], values['variables']) | values['settling']
    mapper |= {'transforms': values['transforms'] or None, 'publish_tf': values['publish_tf']}
    data['mappers'] = [mapper]
    data['simulator']['name'] = values['simulator']
    data['pacing'] |= {'mode': values['pacing'], 'speed_factor': values['speed_factor']}
    data['trajectory'] |= {
        'frame_rate_hz': values['frame_rate_hz'],
        'max_frames': values['max_frames'],
    }
    data['camera'] |= {'width': values['image_width'], 'height': values['image_height']}
    config = parse_config(data, 'launch arguments')
    preparation = Preparation()
    preparation.check_names(config)
    check_run(config, out)
    preparation.check_mappers(config)
    [plan] = preparation.plans(config, out)
    plan = replace(plan, root=out / plan.identity.run_id)
    check_folder(plan.root)
    claim_folder(plan.root)
    write_manifest(plan.root, config, collect_inputs([plan], preparation.digest_of))
    preparation.prepare(plan, progress)
    write_run_manifest(plan, preparation.digest_of(plan), run_warnings(plan, preparation))
    preparation.write_true_trajectory(plan)
    return plan


def condition_at(name: str, velocity: float, out: Path) -> str:
    """Return a condition at a multiple of its speed, in a file of `out` unless that is 1."""
    if velocity == 1.0:
        return name
    if not 0 < velocity < math.inf:
        raise ConfigError(f'velocity is {velocity:g}; it must be above 0, 1 for that of {name}')
    condition = load_condition(name)
    times = f'{velocity:g}'.replace('.', '_')
    file = (out / CONDITIONS_FOLDER / f'{condition.name}_x{times}.yaml').absolute()
    data = condition.model_dump(mode='json') | {'name': file.stem}
    data['description'] = f'{condition.description} {velocity:g} times the speed.'.strip()
    data['motion']['speed_factor'] *= velocity
    text = yaml.safe_dump(data, sort_keys=False)
    if not (file.is_file() and file.read_bytes() == text.encode()):
        write_text(file, text)
    return str(file)


def _mapper(name: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry of a bundled mapper, or of a stack in config/methods/live or in a file."""
    if name in mapper_names():
        return {'name': name}
    stacks = live_method_names()
    if Path(name).suffix != '.yaml':
        problem = 'is no mapper, no stack in config/methods/live and no .yaml file of a stack'
        choose(name, [*mapper_names(), *stacks], ConfigError, f'mapper:={name} {problem}')
    return {'name': Path(name).stem, 'stack': name, 'variables': dict(variables)}
