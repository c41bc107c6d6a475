"""The steps of `make env` outside of Python, with scripts for the tools of the system."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SCRIPT = REPOSITORY / 'requirements' / 'install_debian.sh'
NEEDED = ('bash', 'cat', 'grep', 'ls', 'make', 'mkdir', 'mktemp', 'rm', 'sh', 'test', 'touch')
LAST = '${@: -1}'

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in NEEDED), reason='make or bash is missing'
)


class System:
    """A machine with its packages; `apt-get` installs those that it has."""

    def __init__(self, folder, *, user=1000, debian=True):
        self.tools, self.installed = folder / 'tools', folder / 'installed'
        self.tools.mkdir()
        self.installed.mkdir()
        self.list = folder / 'list.txt'
        self.list.write_text('# what is needed\n\ncmake\nwordnet-base\n')
        for name in NEEDED:
            (self.tools / name).symlink_to(str(shutil.which(name)))
        self.tool('id', f'echo {user}')
        self.tool('sudo', 'exit 1')
        if debian:
            self.tool('dpkg-query', f'[ -e "{self.installed}/{LAST}" ] && echo -n installed')
            self.offer('cmake', 'wordnet-base')

    def tool(self, name, text):
        file = self.tools / name
        file.write_text(f'#!{shutil.which("bash")}\n{text}\n')
        file.chmod(0o755)

    def offer(self, *packages, online=True):
        known = f'{"|".join(packages)}) touch "{self.installed}/{LAST}";;'
        update = f'-qq) exit {0 if online else 100};;'
        self.tool('apt-get', f'case {LAST} in {known} {update} *) exit 100;; esac')

    def run(self, *command, folder=REPOSITORY):
        return subprocess.run(
            command,
            cwd=folder,
            env={'PATH': str(self.tools), 'HOME': os.environ.get('HOME', '/')},
            capture_output=True,
            text=True,
            check=False,
        )

    def install(self):
        done = self.run(str(self.tools / 'bash'), str(SCRIPT), str(self.list))
        return done.returncode, done.stderr

    def make(self, *words):
        done = self.run(str(self.tools / 'make'), *words)
        assert done.returncode == 0, done.stderr
        return done.stderr


def test_root_gets_what_is_missing(tmp_path):
    system = System(tmp_path, user=0)
    assert system.install() == (0, '')
    assert sorted(path.name for path in system.installed.iterdir()) == ['cmake', 'wordnet-base']


def test_who_may_not_install_is_told_what_to_run(tmp_path):
    system = System(tmp_path)
    (system.installed / 'cmake').touch()
    code, reported = system.install()
    assert code == 3
    assert 'sudo apt-get install wordnet-base' in reported


@pytest.mark.parametrize('online', [True, False])
def test_a_package_that_cannot_be_had_is_named_and_the_others_are_installed(online, tmp_path):
    system = System(tmp_path, user=0)
    system.offer('wordnet-base', online=online)
    code, reported = system.install()
    assert code == (0 if online else 3), 'without a network another try may get it'
    assert 'Could not install: cmake.' in reported
    assert (system.installed / 'wordnet-base').exists()


def test_other_systems_are_told_the_names(tmp_path):
    code, reported = System(tmp_path, debian=False).install()
    assert code == 0
    assert 'cmake wordnet-base' in reported


def test_make_goes_on_and_looks_again_until_nothing_is_missing(tmp_path):
    system = System(tmp_path)
    stamp = tmp_path / 'venv' / '.osmabench' / 'system'
    words = (f'VENV={tmp_path / "venv"}', str(stamp))
    for _ in range(2):
        assert 'Missing system packages' in system.make(*words)
        assert not stamp.exists()
    for line in (REPOSITORY / 'requirements' / 'debian.txt').read_text().splitlines():
        if not line.startswith('#'):
            (system.installed / line).touch()
    assert system.make(*words) == ''
    assert stamp.exists()


def test_colcon_does_not_look_into_the_environment(tmp_path):
    """In a workspace it would find each package of ROS there, and this one twice."""
    made = tmp_path / 'venv' / '.osmabench' / 'python'
    made.parent.mkdir(parents=True)
    made.touch()
    ignored = tmp_path / 'venv' / 'COLCON_IGNORE'
    System(tmp_path).make(f'VENV={tmp_path / "venv"}', '-o', str(made), str(ignored))
    assert ignored.exists()


@pytest.mark.parametrize('name', ['ascii', 'with blanks', 'mit Umläuten'])
def test_messages_are_built_in_a_folder_of_any_name(name, tmp_path):
    system, clone = System(tmp_path), tmp_path / name
    site = clone / '.venv' / 'site'
    for folder in (clone / '.venv' / '.osmabench', clone / '.venv' / 'bin', site):
        folder.mkdir(parents=True)
    for made in ('Makefile', 'CMakeLists.txt', 'package.xml', 'pyproject.toml'):
        shutil.copy(REPOSITORY / made, clone)
    stamp = clone / '.venv' / '.osmabench' / 'python'
    stamp.touch()
    python = clone / '.venv' / 'bin' / 'python'
    python.write_text(f'#!/bin/sh\necho "{site}"\n')
    python.chmod(0o755)
    words = tmp_path / 'words'
    system.tool('cmake', f'printf "%s\\n" "$CMAKE_PREFIX_PATH" "$@" >> "{words}"')
    done = system.run('make', '-o', '.venv/.osmabench/python', 'messages', folder=clone)
    assert done.returncode == 0, done.stderr
    prefix, *written = words.read_text().splitlines()
    assert prefix == str(clone / '.venv')
    assert f'-DCMAKE_INSTALL_PREFIX={prefix}' in written
    build = Path(written[written.index('-B') + 1])
    assert written.count(str(build)) == 3, 'configured, built, installed'
    assert str(build).isascii()
    assert (build == clone / '.venv' / 'build') == name.isascii()
    assert (site / 'osmabench_ros_source.pth').read_text() == f'{clone}\n'


def test_a_folder_of_the_users_is_no_environment_and_not_removed(tmp_path):
    system, users = System(tmp_path), tmp_path / 'users'
    users.mkdir()
    (users / 'diary').write_text('dear')
    for goal in ('clean', str(users / '.osmabench' / 'system')):
        done = system.run(str(system.tools / 'make'), f'VENV={users}', goal)
        assert done.returncode != 0
        assert f'{users} ' in done.stderr
        assert [path.name for path in users.iterdir()] == ['diary']


def test_a_virtual_environment_of_the_users_is_used_and_not_removed(tmp_path):
    system, users = System(tmp_path), tmp_path / 'users'
    users.mkdir()
    (users / 'pyvenv.cfg').write_text('home = /usr')
    system.make(f'VENV={users}', str(users / '.osmabench'))
    done = system.run(str(system.tools / 'make'), f'VENV={users}', 'clean')
    assert (done.returncode != 0, (users / 'pyvenv.cfg').is_file()) == (True, True)


def test_an_environment_goes_and_what_a_link_leads_to_stays(tmp_path):
    system, real = System(tmp_path), tmp_path / 'real'
    system.make(f'VENV={real}', str(real / '.osmabench'))
    (tmp_path / 'link').symlink_to(real)
    system.make(f'VENV={tmp_path / "link"}', 'clean')
    assert (real.is_dir(), (tmp_path / 'link').is_symlink()) == (True, False)
    for _ in range(2):
        system.make(f'VENV={real}', 'clean')
        assert not real.exists()


def run_target(target, folder, failing=''):
    """Run a target of tests in an environment of scripts, one of which may fail."""
    system, venv = System(folder), folder / 'venv'
    for place in (venv / 'bin', venv / '.osmabench'):
        place.mkdir(parents=True)
    for stamp in ('system', 'python', 'messages'):
        (venv / '.osmabench' / stamp).touch()
    for name in ('python', 'ruff', 'mypy', 'lint-imports'):
        program = venv / 'bin' / name
        program.write_text(f'#!/bin/sh\necho "{name} ran $*"\nexit {int(name == failing)}\n')
        program.chmod(0o755)
    return system.run(str(system.tools / 'make'), f'VENV={venv}', target)


@pytest.mark.parametrize('failing', ['', 'python', 'ruff', 'lint-imports'])
def test_tests_and_lint_run_beside_each_other_and_each_can_fail(failing, tmp_path):
    done = run_target('test', tmp_path, failing)
    assert (done.returncode != 0) == bool(failing), done.stderr
    assert 'python ran' in done.stdout
    assert done.stdout.index('python ran') < done.stdout.index('ruff ran'), 'lint is printed last'
    assert ('lint-imports ran' in done.stdout) == (failing != 'ruff')
    said = {'': '', 'python': 'the tests failed'}.get(failing, 'lint failed')
    assert said in done.stderr


@pytest.mark.parametrize(('target', 'leaves_out'), [('test', True), ('test-all', False)])
def test_two_sizes(target, leaves_out, tmp_path):
    printed = run_target(target, tmp_path).stdout
    assert ('-m not full' in printed) == leaves_out
    assert 'python ran -m pytest' in printed
    assert 'ruff ran' in printed
