import json
import pickle
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from support.world.matrix import HOSTILE

from osmabench_ros.base.files import claim_folder
from osmabench_ros.reports import content
from osmabench_ros.reports.page.page import list_home_advantages, write_page
from osmabench_ros.runs.config import MapperConfig


class Elements(HTMLParser):
    """Collects what a browser would find, without running anything."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope='module')
def elements(html):
    return Elements(html).found


def test_bundled_mappers_are_said_to_be_at_home(runs, html):
    [notice] = re.findall(r'<strong>Shared assumptions\.</strong>(.*?)</p>', html)
    assert 'oracle reads ground-truth images' in notice
    assert 'definitions of the benchmark' in notice
    foreign = MapperConfig(name='oracle', command=('ros2', 'run', 'a', 'b'))
    abroad = [replace(run, plan=replace(run.plan, mapper=foreign)) for run in runs]
    assert list_home_advantages(abroad) == {}


def test_the_page_needs_nothing_beside_it(elements):
    for tag, attributes in elements:
        assert tag not in ('link', 'iframe', 'object', 'embed')
        for name in ('src', 'href', 'xlink:href', 'action', 'srcset'):
            value = attributes.get(name)
            assert value is None or value.startswith(('data:image/', '#')), (tag, name, value)


def test_no_text_from_outside_becomes_markup(html, elements):
    assert not any(attributes.get('id') == 'injected' for _, attributes in elements)
    assert not any('onerror' in attributes for _, attributes in elements)
    assert [tag for tag, _ in elements].count('script') == 7
    start = html.index('id="question-data">') + len('id="question-data">')
    data = json.loads(html[start : html.index('</script>', start)])
    question = data['scenes'][data['runs'][0]['scene']]['questions'][-1]
    assert question['answer'] == HOSTILE
    assert data['runs'][0]['nodes']['999']['name'] == HOSTILE[:80]


def test_only_our_own_script_may_run(html, elements):
    policy = next(a['content'] for t, a in elements if 'http-equiv' in a)
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", policy)
    assert "script-src 'unsafe-inline'" not in policy
    assert 'unsafe-eval' not in policy


def test_ids_are_unique_and_every_reference_leads_somewhere(elements):
    counts = Counter(a['id'] for _, a in elements if a.get('id'))
    assert [name for name, count in counts.items() if count > 1] == []
    wanted = {a['href'][1:] for _, a in elements if (a.get('href') or '').startswith('#')}
    assert wanted - set(counts) == set()


def test_pictures_and_tables_say_what_they_are(html, elements):
    assert all(a['aria-label'] for _, a in elements if 'data-chart' in a)
    for tag, attributes in elements:
        if tag == 'img':
            assert attributes.get('alt')
        if tag == 'svg' and attributes.get('aria-hidden') != 'true':
            assert attributes.get('aria-label')
    tags = [tag for tag, _ in elements]
    assert tags.count('table') == tags.count('caption')
    headings = [int(tag[1]) for tag, _ in elements if re.fullmatch(r'h[1-6]', tag)]
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))


def test_failed_runs_are_shown_with_their_error(html):
    escaped = '&lt;/script&gt;&lt;img src=x'
    assert html.count(escaped) >= 4
    assert 'broken' in html


def test_a_frame_and_four_views_stand_for_each_run(elements):
    frames = [a for tag, a in elements if tag == 'img']
    assert len(frames) == 4 * 3
    uris = [a['href'] for tag, a in elements if tag == 'image']
    assert len(uris) == 1 + 4 * 3
    assert [tag for tag, _ in elements].count('article') == 6


@pytest.mark.full
def test_a_missing_map_is_said_and_does_not_stop_the_page(matrix, tmp_path):
    root = tmp_path / 'copy'
    shutil.copytree(matrix.root, root)
    plans = [replace(plan, root=root) for plan in matrix.plans]
    shutil.rmtree(plans[0].map_directory)
    (plans[1].map_directory / 'map.json').write_text('{')
    html = write_page(matrix.report, plans, root).read_text(encoding='utf-8')
    assert html.count('class="notice"') >= 2
    assert str(plans[0].map_directory) in html


def test_a_folder_with_nothing_but_reports_still_gives_a_page(matrix, tmp_path):
    plans = [replace(plan, root=tmp_path) for plan in matrix.plans]
    html = write_page(matrix.report, plans, tmp_path).read_text(encoding='utf-8')
    assert 'id="headline-table"' in html
    assert 'id="question-table"' not in html


@pytest.mark.full
def test_encoders_and_labels_made_by_machine_are_named(matrix, tmp_path):
    claim_folder(tmp_path)
    plans = [replace(plan, root=tmp_path) for plan in matrix.plans]
    first, *others = matrix.report.runs
    of_tiers = {'suite': 'openlex3d', 'metric': 'machine_made_labels', 'value': 1.0}
    record = replace(first.metrics[0], **of_tiers)
    of_prompts = {'suite': 'openlex3d', 'metric': 'prompts', 'value': 1041.0, 'n': 1041}
    count = replace(first.metrics[0], **of_prompts)
    reported = first.model_copy(
        update={'metrics': (*first.metrics, record, count), 'encoders': {'prompts': 'ToyCLIP <b>'}}
    )
    plain = write_page(matrix.report, plans, tmp_path).read_text(encoding='utf-8')
    assert 'made by machine' not in plain
    report = matrix.report.model_copy(update={'runs': (reported, *others)})
    html = write_page(report, plans, tmp_path).read_text(encoding='utf-8')
    assert 'labels behind the OpenLex3D metrics were made by machine' in html
    assert 'the best of 1041 prompts' in html
    assert '<th scope="row">prompts</th><td>ToyCLIP &lt;b&gt;</td>' in html


def test_a_large_matrix_shows_the_pictures_of_its_first_runs(runs, monkeypatch):
    monkeypatch.setattr(content, 'MOST_ILLUSTRATED', 1)
    sections = content.gather(runs).sections
    assert [section.pictures is not None for section in sections] == [True] + [False] * 5
    # Failed runs are never left out.
    assert [section.shown for section in sections] == [True, False, True, False, False, True]


def test_the_page_stays_small(page):
    assert page.stat().st_size < 3_500_000


@pytest.mark.full
def test_the_page_is_drawn_without_torch(matrix, tmp_path):
    script = (
        'import sys, pickle, pathlib\n'
        'class Blocked:\n'
        '    def find_spec(self, name, path=None, target=None):\n'
        '        if name.partition(".")[0] == "torch":\n'
        '            raise ModuleNotFoundError(name)\n'
        'sys.meta_path.insert(0, Blocked())\n'
        'from osmabench_ros.reports.page.page import write_page\n'
        'report, plans = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n'
        'write_page(report, plans, pathlib.Path(sys.argv[2]))\n'
    )
    (tmp_path / 'input').write_bytes(pickle.dumps((matrix.report, matrix.plans[:1])))
    command = [sys.executable, '-c', script, str(tmp_path / 'input'), str(tmp_path)]
    subprocess.run(command, check=True)
    assert 'Right and wrong on the visible surface' in (tmp_path / 'report.html').read_text()
