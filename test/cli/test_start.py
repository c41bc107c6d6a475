"""The modules that the command imports for its help, counted instead of timed."""

import json

from support.commands import commands, osmabench
from support.programs import run_python

GROUPS = ['demo', 'run', 'status', 'report', 'compare', 'export', 'scene', 'map', 'bag', 'score',
          'vqa', 'conditions', 'doctor']  # fmt: skip
NOT_FOR_HELP = {'torch', 'open3d', 'scipy', 'pandas', 'rclpy', 'altair', 'trimesh', 'skimage',
                'numpy', 'yaml', 'PIL', 'jinja2', 'osmabench_ros.runs'}  # fmt: skip
START = """
import json, sys
from typer.testing import CliRunner
from osmabench_ros.cli.main import app
for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (0, 2) and 'Usage: ' in done.output, (words, done.output)
print(json.dumps(sorted(sys.modules)))
"""


def test_help_and_errors_of_every_command_import_nothing_heavy():
    names = [name.split() for name in commands()]
    assert {name[0] for name in names} == {*GROUPS}
    calls = [[], ['--help'], ['no-such'], ['--no-such'], ['run'], ['run', '--no-such']]
    calls += [[*name, '--help'] for name in [*names, *([group] for group in GROUPS)]]
    done = run_python('-c', START, json.dumps(calls))
    assert done.returncode == 0, done.stderr
    imported = NOT_FOR_HELP.intersection(json.loads(done.stdout.splitlines()[-1]))
    assert imported == set()


def test_every_command_is_listed_with_the_first_sentence_of_its_help():
    lists = {
        group: ' '.join(osmabench(*group.split(), '--help').output.split())
        for group in ('', *GROUPS)
    }
    for name, command in commands().items():
        first = command.help.partition('\n\n')[0].replace('\n', ' ')
        assert first.endswith('.')
        shown = lists[name.rpartition(' ')[0]].replace('│ │', '')
        assert ' '.join(first.replace('`', '').split()) in ' '.join(shown.split()), name


def test_a_wrong_command_gets_the_nearest_one():
    done = osmabench('map', 'evalute')
    assert done.exit_code == 2
    assert "'evaluate'" in done.output
