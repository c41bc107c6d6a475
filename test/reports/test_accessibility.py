"""axe finds nothing against WCAG 2 A and AA on the page, in a browser, at three widths."""

from importlib.resources import files

import pytest

pytest.importorskip('axe_playwright_python')

pytestmark = pytest.mark.browser

RULES = """async (part) => {
  document.querySelectorAll('details').forEach((item) => { item.open = true; });
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
  const found = await axe.run(part, { runOnly: tags, resultTypes: ['violations'] });
  return found.violations.flatMap((rule) =>
    rule.nodes.map((node) => `${rule.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}"""


def test_the_report_is_accessible(page, browser):
    axe = files('axe_playwright_python').joinpath('axe.min.js').read_text('utf-8')
    with browser.new_page() as tab:
        tab.goto(page.as_uri())
        tab.wait_for_selector('html[data-drawn]')
        tab.evaluate(axe)
        for width, scheme in [(390, 'light'), (768, 'dark'), (1440, 'light')]:
            tab.set_viewport_size({'width': width, 'height': 900})
            tab.emulate_media(color_scheme=scheme)
            assert tab.evaluate(RULES, 'html') == [], (width, scheme)
        # The rules can fail.
        tab.evaluate("document.querySelector('h1').style.color = 'rgb(128 128 128 / 40%)'")
        assert any('color-contrast' in fault for fault in tab.evaluate(RULES, 'h1'))
