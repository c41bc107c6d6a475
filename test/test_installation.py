"""Entry points and messages are found in the repository, the environment, a colcon install."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from support.programs import run_program, run_python

REPOSITORY = Path(__file__).resolve().parents[1]

LOOK = """
import json, sys
from importlib.metadata import entry_points
import osmabench_ros
from osmabench_ros import errors
found = {}
groups = ('mappers', 'suites', 'effects', 'simulators')
for group in (*(f'osmabench.{group}' for group in groups), 'console_scripts'):
    found[group] = sorted(
        entry.name for entry in entry_points(group=group) if 'osmabench_ros' in entry.value
    )
import osmabench_ros.msg
messages = osmabench_ros.msg.__file__
print(json.dumps({'points': found, 'messages': messages, 'code': errors.__file__}))
"""

pytestmark = pytest.mark.ros


def look(folder, variables=None):
    result = run_python('-c', LOOK, cwd=folder, variables=variables or {})
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def check_points(found):
    assert {'oracle', 'noisy_oracle', 'appearance'} <= set(found['points']['osmabench.mappers'])
    assert 'osma_segmentation' in found['points']['osmabench.suites']
    assert 'opengl' in found['points']['osmabench.simulators']
    assert 'gamma' in found['points']['osmabench.effects']
    assert found['points']['console_scripts'] == ['osmabench']


def test_from_the_repository_root():
    found = look(REPOSITORY)
    check_points(found)
    assert Path(found['code']).is_relative_to(REPOSITORY)


def test_from_anywhere_in_the_local_environment(tmp_path):
    found = look(tmp_path)
    check_points(found)
    assert Path(sysconfig.get_path('scripts'), 'osmabench').exists()


def command_of_readme(part):
    """Return the one line of the README's own commands that has some text in it."""
    lines = (REPOSITORY / 'README.md').read_text('utf-8').splitlines()
    [command] = [line for line in lines if line.startswith(part)]
    return command


def copy_source(to):
    """Copy the tree, in which setuptools and CMake would leave build/ and metadata."""

    def made_here(folder, names):
        made = {'__pycache__'}
        if Path(folder) == REPOSITORY:  # the package has a folder runs too
            made |= {'.git', 'build', 'dist', 'htmlcov', 'install', 'log', 'runs'}
            made |= {name for name in names if name.startswith('.venv') or 'egg-info' in name}
        return made & set(names)

    return Path(shutil.copytree(REPOSITORY, to, ignore=made_here))


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_command_of_the_readme_builds_a_workspace(tmp_path):
    if not Path(sys.executable).with_name('colcon').exists():
        pytest.skip('colcon is not installed beside this interpreter')
    copy_source(tmp_path / 'src' / 'osmabench_ros')
    # The wheels lie where /opt/ros would be, and the environment that is active is theirs.
    variables = {
        'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}',
        'VIRTUAL_ENV': sys.prefix,
        # Whether it can be built is asked, not how fast it is.
        **dict.fromkeys(('CFLAGS', 'CXXFLAGS'), '-O0'),
        'CMAKE_PREFIX_PATH': f'{os.environ.get("CMAKE_PREFIX_PATH", "")}:{sys.prefix}',
        'AMENT_PREFIX_PATH': f'{os.environ.get("AMENT_PREFIX_PATH", "")}:{sys.prefix}',
    }
    build = command_of_readme('python3 -m colcon build')
    script = f'{build} && cd / && osmabench conditions list && python3 -c "$LOOK"'
    done = run_program('bash', '-c', script, cwd=tmp_path, variables={**variables, 'LOOK': LOOK})
    assert done.returncode == 0, done.stdout + done.stderr
    install = tmp_path / 'install' / 'osmabench_ros'
    found = json.loads(done.stdout.splitlines()[-1])
    check_points(found)
    assert Path(found['code']).is_relative_to(install)
    assert Path(found['messages']).is_relative_to(install)
    assert (install / 'share/osmabench_ros/launch/full_run.launch.py').exists()
    assert (install / 'share/osmabench_ros/config/demo.yaml').exists()
    assert (install / 'share/osmabench_ros/requirements/beside_ros.txt').exists()
    for program in ('lib/osmabench_ros/evaluator_node', 'bin/osmabench'):
        assert os.access(install / program, os.X_OK)
        assert f'exec\' "{sys.prefix}/bin/python' in (install / program).read_text()


def test_a_program_starts_an_interpreter_in_a_folder_of_any_name(tmp_path):
    interpreter = tmp_path / 'mein Ordner ü' / 'python'
    interpreter.parent.mkdir()
    interpreter.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    program = tmp_path / 'program'
    template = (REPOSITORY / 'cmake' / 'script.py.in').read_text('utf-8')
    text = template.replace('@Python3_EXECUTABLE@', str(interpreter))
    program.write_text(text.replace('@module@', 'cli.entry'))
    for file in (interpreter, program):
        file.chmod(0o755)
    printed = subprocess.check_output([str(program), '--version'], cwd=tmp_path, text=True)
    assert printed.startswith('osmabench')


def test_the_core_works_without_ros(tmp_path):
    """Build the wheel, unpack it, and use it where no ROS package can be imported."""
    source = copy_source(tmp_path / 'source')
    build = 'wheel', source, '--no-deps', '--quiet', '--no-build-isolation'
    run_python('-m', 'pip', *build, '--wheel-dir', tmp_path, cwd=tmp_path, check=True)
    [wheel] = tmp_path.glob('*.whl')
    install = 'install', '--no-deps', '--quiet', '--ignore-installed'
    run_python('-m', 'pip', *install, '--prefix', tmp_path / 'prefix', wheel, check=True)
    site = next((tmp_path / 'prefix').rglob('site-packages'))
    use = """
import sys
for name in ('rclpy', 'sensor_msgs', 'geometry_msgs', 'std_msgs', 'builtin_interfaces'):
    sys.modules[name] = None
sys.path.insert(0, sys.argv.pop(1))
from osmabench_ros import errors
assert errors.__file__.startswith(sys.path[0]), errors.__file__
from osmabench_ros.cli.main import main
main()
"""
    for arguments in (['--help'], ['conditions', 'list'], ['map', 'methods'], ['score', '--help']):
        result = run_python('-c', use, site, *arguments, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    run = run_python('-c', use, site, 'demo', cwd=tmp_path)
    assert run.returncode == 3
    assert 'a run needs ROS 2' in run.stderr
