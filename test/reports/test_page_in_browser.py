"""The page in a real browser, opened as a file."""

import io
import re

import pytest
from PIL import Image

from osmabench_ros.reports import tidy

pytestmark = pytest.mark.browser


@pytest.fixture
def tab(browser, page):
    """Open the page; whatever it complains about or asks for fails the test."""
    tab = browser.new_page(viewport={'width': 1200, 'height': 900})
    complaints = []
    requests = []
    # That a machine draws in software is not a fault of the page.
    tab.on('console', lambda m: complaints.append(m.text) if 'WebGL' not in m.text else None)
    tab.on('pageerror', lambda error: complaints.append(str(error)))
    tab.on('request', lambda request: requests.append(request.url))
    tab.goto(page.as_uri())
    tab.wait_for_selector('html[data-drawn]')
    yield tab
    tab.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith('data:')] == [page.as_uri()]


def column(tab, table, number):
    return tab.eval_on_selector_all(
        f'#{table} tbody tr:not([hidden]) > :nth-child({number})',
        'cells => cells.map(cell => cell.textContent.trim())',
    )


def visible_questions(tab):
    return tab.eval_on_selector_all(
        '.question-toggle', 'items => items.map(item => item.textContent)'
    )


def marks(tab, chart, kind):
    return tab.locator(f'[data-chart={chart}] .mark-{kind}.role-mark > path').count()


def test_every_chart_is_drawn_with_a_mark_for_each_figure(tab):
    charts = tab.locator('[data-chart]')
    assert tab.get_attribute('html', 'data-drawn') == str(charts.count())
    assert charts.count() == tab.locator('[data-chart] > svg').count() >= 5
    headlines = tab.locator('#headline-table tbody td.number').count()
    # A bar for each value of each run, without the metrics that only the table shows.
    titles = tab.locator('#headline-table thead th').all_inner_texts()
    only_in_table = {item.title for item in tidy.read_headlines() if not item.in_charts}
    left_out = sum(title.strip() in {*only_in_table, 'constant'} for title in titles)
    runs = tab.locator('#headline-table tbody tr:not(:has(.error))').count()
    assert marks(tab, 'conditions', 'rect') == headlines - left_out * runs
    classes = len(column(tab, 'class-table', 1))
    assert marks(tab, 'classes', 'symbol') >= classes


def test_the_mouse_is_answered_with_run_value_and_interval(tab):
    bar = tab.locator('[data-chart=questions] .mark-symbol.role-mark > path').first
    bar.hover(force=True)
    shown = tab.locator('#vg-tooltip-element').inner_text()
    assert re.search(r'(noisy_)?oracle · (baseline|camera)', shown)
    assert all(name in shown for name in ('value', '95 % interval', 'category'))
    assert re.search(r'[\d.]+ to [\d.]+', shown)
    # An mAcc of one scene has no interval.
    tab.locator('[data-chart=conditions] .mark-rect.role-mark > path').first.hover(force=True)
    tab.wait_for_function(
        "() => document.querySelector('#vg-tooltip-element').innerText.includes('mAcc')"
    )
    shown = tab.locator('#vg-tooltip-element').inner_text()
    assert 'none' in shown
    assert 'null' not in shown


def test_a_chosen_method_is_alone_in_charts_and_tables_until_it_is_chosen_again(tab):
    before = marks(tab, 'conditions', 'rect')
    tab.locator('[data-chart=conditions] .mark-rect.role-mark > path').first.click(force=True)
    chosen = tab.locator('[data-choose][aria-pressed=true]')
    chosen.wait_for()
    assert chosen.inner_text() == 'oracle'
    tab.wait_for_function(
        "count => document.querySelectorAll('[data-chart=conditions] .mark-rect.role-mark > path')"
        '.length === count',
        arg=before // 2,
    )
    names = tab.locator('#headline-table tbody tr:visible > th').all_inner_texts()
    assert {text.split()[0] for text in names} == {'oracle'}
    heads = tab.locator('#figure-table thead th.number:visible').all_inner_texts()
    assert heads
    assert all(text.startswith('oracle · ') for text in heads)
    tab.locator('[data-choose=condition]', has_text='camera').click()
    assert tab.locator('#headline-table tbody tr:visible').count() == 1
    for name in ('camera', 'oracle'):
        tab.locator(f'[data-choose][value={name}]').click()
    assert tab.locator('#headline-table tbody tr:visible').count() == 6


def test_hostile_texts_stay_texts(tab):
    assert tab.evaluate('window.hacked') is None
    assert tab.locator('#injected').count() == 0
    tab.select_option('[name=category]', 'Object Attributes')
    tab.click('.question-toggle')
    assert 'onerror="window.hacked=true"' in tab.locator('tr.basis').inner_text()
    assert tab.locator('tr.basis dd', has_text='</script>').count() >= 1
    assert tab.evaluate('window.hacked') is None
    assert tab.locator('#injected').count() == 0


def test_a_script_that_got_in_would_not_run(browser, page, tmp_path):
    text = page.read_text(encoding='utf-8')
    spoilt = tmp_path / 'spoilt.html'
    bad = '<script>window.hacked = true</script><img src="http://127.0.0.1:9/x.png">'
    spoilt.write_text(text.replace('<main', f'{bad}<main', 1), encoding='utf-8')
    tab = browser.new_page()
    refused = []
    tab.on('console', lambda message: refused.append(message.text))
    tab.goto(spoilt.as_uri())
    assert tab.evaluate('window.hacked') is None
    assert sum('Content Security Policy' in text for text in refused) == 2
    tab.close()


def test_a_click_on_a_head_sorts_and_another_turns_it_round(tab):
    head = tab.locator('#class-table th', has_text='Surface')
    head.get_by_role('button').click()
    assert head.get_attribute('aria-sort') == 'descending'
    falling = [float(text) for text in column(tab, 'class-table', 2)]
    assert falling == sorted(falling, reverse=True)
    head.get_by_role('button').click()
    assert head.get_attribute('aria-sort') == 'ascending'
    assert [float(text) for text in column(tab, 'class-table', 2)] == falling[::-1]


def test_heads_below_a_group_sort_their_own_column(tab):
    heads = tab.locator('#class-table thead tr:nth-child(2) th')
    heads.nth(5).get_by_role('button').click()
    values = column(tab, 'class-table', 3 + 5)
    numbers = [float(text) for text in values if text != '\N{EN DASH}']
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) > 1
    assert values[len(numbers) :] == ['\N{EN DASH}'] * (len(values) - len(numbers))


def test_names_sort_by_letter_and_failed_runs_stay_last(tab):
    tab.locator('#headline-table th', has_text='Mapper').get_by_role('button').click()
    mappers = [text.split()[0] for text in column(tab, 'headline-table', 3)]
    assert mappers == ['noisy_oracle'] * 2 + ['oracle'] * 2 + ['broken'] * 2


def test_tables_filter_as_one_types(tab):
    everything = column(tab, 'class-table', 1)
    tab.fill('[data-table=class-table]', 'so')
    assert column(tab, 'class-table', 1) == ['sofa']
    assert tab.inner_text('[data-count=class-table]') == f'1 of {len(everything)}'
    tab.fill('[data-table=class-table]', '')
    assert column(tab, 'class-table', 1) == everything


def test_questions_filter_by_category_verdict_and_text(tab):
    assert len(visible_questions(tab)) == 5
    tab.select_option('[name=category]', 'Existence-Positive')
    assert len(visible_questions(tab)) == 2
    tab.fill('#question-controls [name=text]', 'sofa')
    assert visible_questions(tab) == ['Is there a sofa in the scene?']
    tab.select_option('[name=verdict]', 'wrong')
    assert visible_questions(tab) == []
    assert tab.inner_text('#question-count').startswith('0 of 5')


def test_answers_of_two_runs_stand_side_by_side(tab):
    assert tab.locator('#question-table th.other').is_hidden()
    tab.select_option('[name=other]', '1')
    assert tab.locator('#question-table th.other').is_visible()
    own, other = column(tab, 'question-table', 5), column(tab, 'question-table', 6)
    differing = sum(not b.startswith(a) for a, b in zip(own, other, strict=True))
    tab.select_option('[name=verdict]', 'differs')
    assert len(visible_questions(tab)) == differing


def test_a_question_opens_by_keyboard_with_its_frame_and_places(tab):
    tab.focus('.question-toggle >> nth=1')
    tab.keyboard.press('Enter')
    basis = tab.locator('tr.basis')
    assert 'table (6)' in basis.inner_text()
    assert basis.locator('.framed img').evaluate('image => image.naturalWidth') > 0
    assert basis.locator('.framed span').count() == 1
    assert basis.locator('rect.box-truth').count() == 1
    tab.keyboard.press('Enter')
    assert tab.locator('tr.basis').count() == 0


def test_on_a_narrow_screen_questions_are_cards_that_show_their_verdict(tab):
    tab.set_viewport_size({'width': 390, 'height': 800})
    tab.click('.question-toggle >> nth=1')
    for place in ('#question-table .verdict', 'tr.basis .framed img', 'tr.basis dd >> nth=0'):
        box = tab.locator(place).first.bounding_box()
        assert box['x'] >= 0, place
        assert box['x'] + box['width'] <= 390, place
    labels = tab.eval_on_selector_all(
        '#question-table tr:first-child td[data-label]', 'cells => cells.map(c => c.dataset.label)'
    )
    assert labels == ['Category', 'Right answer', 'Answer', 'Verdict']


def test_charts_fit_the_paper(tab):
    tab.set_viewport_size({'width': 480, 'height': 800})
    tab.emulate_media(media='print')
    for chart in tab.locator('[data-chart] svg').all():
        box = chart.bounding_box()
        assert box['x'] + box['width'] <= 480


def test_pictures_enlarge_and_escape_closes_them(tab):
    tab.focus('.view svg >> nth=0')
    tab.keyboard.press('Enter')
    assert tab.locator('#enlarged').is_visible()
    tab.keyboard.press('Escape')
    assert tab.locator('#enlarged').is_hidden()
    tab.locator('.frames img').first.click()
    assert tab.locator('#enlarged img').is_visible()


def test_the_map_is_drawn_in_space_and_tells_of_its_frames(tab):
    tab.locator('#space-canvas').scroll_into_view_if_needed()
    tab.wait_for_selector('#space-track svg rect', state='attached')
    layers = tab.eval_on_selector_all('[name=layer] option', 'all => all.map(one => one.value)')
    assert {'class', 'error', 'truth', 'things'} <= set(layers)
    tab.select_option('#space-controls [name=layer]', 'error')
    tab.wait_for_selector('#space-legend li')
    assert 'right class' in tab.inner_text('#space-legend')
    tab.check('#space-controls [name=graph]')
    tab.click('#space-track svg')
    assert '% right class' in tab.inner_text('#space-said')
    tab.wait_for_timeout(500)
    shot = Image.open(io.BytesIO(tab.locator('#space-canvas').screenshot())).convert('RGB')
    assert len(shot.getcolors(1 << 24) or ()) > 20


def test_narrow_windows_scroll_tables_not_the_page(tab):
    tab.set_viewport_size({'width': 360, 'height': 700})
    assert tab.evaluate('document.documentElement.scrollWidth') <= 360
