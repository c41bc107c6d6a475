"""The pages of docs/ build into a site, and are right about keys and commands."""

import re
from functools import cache
from pathlib import Path

import pytest
from support.benchmark_scripts import load_script
from support.commands import commands
from support.programs import run_program, run_python

REPOSITORY = Path(__file__).parents[1]
PAGES = [REPOSITORY / 'README.md', *sorted((REPOSITORY / 'docs').glob('*.md'))]


@cache
def made_pages():
    return dict(load_script(REPOSITORY / 'docs' / 'reference.py').pages())


@pytest.mark.full
def test_the_site_builds_without_a_broken_link(tmp_path):
    site, variables = tmp_path / 'site', {'NO_MKDOCS_2_WARNING': '1'}
    command = '-m', 'mkdocs', 'build', '--quiet', '--site-dir', site
    done = run_python(*command, cwd=REPOSITORY, variables=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in [*PAGES[1:], *map(Path, made_pages())]:
        name = page.relative_to(REPOSITORY / 'docs') if page.is_absolute() else page
        assert (site / name.with_suffix('.html')).is_file(), name
    text = (site / 'index.html').read_text('utf-8')
    assert 'http://fonts' not in text
    assert 'https://fonts' not in text
    assert 'src="http' not in text, 'search works without a network'
    assert not [*site.rglob('__pycache__'), *site.rglob('*.py')]


@pytest.mark.parametrize('page', ['configuration', 'conditions', 'options'])
def test_every_key_is_explained(page):
    text, rows = '', 0
    unexplained = []
    for block in made_pages()[f'reference/{page}.md'].split('\n\n'):
        if not block.startswith('| key'):
            text += block
            continue
        for line in block.splitlines()[2:]:
            key, meaning = line.removeprefix('| ').split(' | ')[:2]
            if not meaning.strip() and key not in text:
                unexplained.append((text[:60], key))
            rows += 1
        text = ''
    assert unexplained == []
    assert rows > 50


def test_every_command_is_in_the_reference():
    text = made_pages()['reference/commands.md']
    for command in commands():
        assert f'# `osmabench {command}`' in text, command


@pytest.mark.parametrize(
    ('folder', 'page'), [('my_lab', 'docs/tutorial.md'), ('my_bench', 'CONTRIBUTING.md')]
)
def test_the_files_of_the_pages_lie_in_examples(folder, page):
    text = (REPOSITORY / page).read_text('utf-8')
    shown = {}
    for block in re.findall(r'^```\w+\n(# [\w/]+\.\w+\n.*?)^```$', text, re.DOTALL | re.MULTILINE):
        name = block.splitlines()[0].removeprefix('# ').removeprefix(f'{folder}/')
        shown[name] = block
    examples = REPOSITORY / 'examples' / folder
    listing = 'git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard', '.'
    tracked = run_program(*listing, cwd=examples, check=True).stdout.split('\0')
    assert {name: (examples / name).read_text('utf-8') for name in tracked if name} == shown


def test_the_readme_is_short():
    text = PAGES[0].read_text('utf-8')
    assert len(text.splitlines()) < 160
    assert len(text.split()) < 950


def test_every_rule_for_metrics_has_its_test_or_a_reason():
    text = (REPOSITORY / 'CONTRIBUTING.md').read_text('utf-8')
    _, text = text.split('| metrics | 1 denominator')
    rows = [line.strip('| ').split(' | ') for line in text.split('\n\n')[0].splitlines()[2:]]
    assert len(rows) > 10
    assert {len(row) for row in rows} == {8}
    tests = {
        str(file.relative_to(REPOSITORY / 'test').with_suffix('')).replace(
            'test_', ''
        ): re.findall(r'^def test_(\w+)', file.read_text('utf-8'), re.MULTILINE)
        for file in (REPOSITORY / 'test').rglob('test_*.py')
    }
    for metrics, *cells in rows:
        for cell in cells:
            assert cell.strip(), metrics
            for file, start in re.findall(r'`([\w/]+)::(\w+)`', cell):
                named = [name for name in tests if f'/{name}'.endswith(f'/{file}')]
                assert len(named) == 1, f'{metrics}: {file} is {named}'
                found = [name for name in tests[named[0]] if name.startswith(start)]
                assert len(found) == 1, f'{metrics}: {file}::{start} is {found}'
