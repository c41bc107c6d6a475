"""Reads what RTAB-Map's launch file declares; README.md says how."""

import ast
import json
import sys
from pathlib import Path

OUTPUT = Path(__file__).with_name('rtabmap_launch.json')


def constant(call, key):
    values = (k.value for k in call.keywords if k.arg == key)
    return next((value.value for value in values if isinstance(value, ast.Constant)), None)


def calls(tree, function):
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in found if getattr(call.func, 'id', '') == function]


if __name__ == '__main__':
    file = Path(sys.argv[1], 'rtabmap_launch', 'launch', 'rtabmap.launch.py')
    tree = ast.parse(file.read_text())
    declared = calls(tree, 'DeclareLaunchArgument')
    executables = {constant(call, 'executable') for call in calls(tree, 'Node')} - {None}
    launch = {
        'arguments': {call.args[0].value: constant(call, 'default_value') for call in declared},
        'executables': sorted(executables),
    }
    OUTPUT.write_text(json.dumps(launch, indent=1) + '\n')
