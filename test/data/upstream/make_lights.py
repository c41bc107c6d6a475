"""Runs the light code of habitat_data_generator and writes its lights; README.md says how."""

import json
import sys
import types
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / 'lights'
GOALS = 5


def load_light_setup(clone):
    """Return the function that sets lights up, without Habitat-Sim."""
    gfx: Any = types.ModuleType('habitat_sim.gfx')
    gfx.LightInfo = lambda **info: info
    gfx.LightPositionModel = types.SimpleNamespace(
        Camera='Camera', Global='Global', Object='Object'
    )
    settings: Any = types.ModuleType('hadage.core.settings')
    settings.make_cfg = None
    for name in ('habitat_sim', 'hadage', 'hadage.core'):
        sys.modules[name] = types.ModuleType(name)
    sys.modules.update({module.__name__: module for module in (gfx, settings)})
    code: dict[str, Any] = {}
    exec((clone / 'hadage/core/lights.py').read_text(), code)
    return code['set_light_setup']


def lights_of_goals(set_light_setup, file):
    """Return the lights of each goal segment, as they are handed to Habitat-Sim."""
    lights: list[list[dict[str, Any]]] = []
    simulator = types.SimpleNamespace(set_light_setup=lambda found, _: lights.append(found))
    for goal in range(GOALS):
        set_light_setup(simulator, json.loads(file.read_text()), goal)
    return lights


if __name__ == '__main__':
    setup = load_light_setup(Path(sys.argv[1]))
    files = sorted(FOLDER.glob('light_settings_*.json'))
    results = {file.stem: lights_of_goals(setup, file) for file in files}
    (FOLDER / 'results.json').write_text(json.dumps(results) + '\n')
