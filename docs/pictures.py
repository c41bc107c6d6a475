"""Makes the pictures of the documentation from the page of the demo: `make pictures`."""

import hashlib
import io
import json
import re
import sys
from pathlib import Path
from shutil import which
from typing import Any

from PIL import Image

from osmabench_ros.reports.page.page import PAGE, TEMPLATES
from osmabench_ros.reports.tidy import read_headlines

FOLDER = Path(__file__).parent
NOTE = FOLDER / 'pictures.json'
SIZE = {'width': 1240, 'height': 1000}
STEPS, FRAME_MS, WIDTH_PX = 20, 250, 720
LARGEST_BYTES = 2_000_000


def shown_digest() -> str:
    """Return a digest of the sections, controls and metrics of the page that the images show."""
    parts = [item.title for item in read_headlines()]
    for file in sorted(TEMPLATES.glob('*.html')):
        parts += re.findall(r'<h[23][^>]*>([^<{]+)<|<label>([^<{]+)<', file.read_text('utf-8'))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def make_pictures(page: Path) -> None:
    """Write report.png, space.png and run.webp, and the digest of their contents."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=which('chromium'), args=['--no-sandbox', '--enable-unsafe-swiftshader']
        )
        tab = browser.new_page(viewport=SIZE, color_scheme='light')
        tab.goto(page.absolute().as_uri())
        _write('report.png', _image(tab.screenshot()).quantize(256))
        # The navigation bar would cover the top of the image.
        tab.evaluate("document.querySelector('nav').hidden = true")
        tab.locator('#space').scroll_into_view_if_needed()
        tab.wait_for_selector('#space-track svg rect', state='attached', timeout=120_000)
        tab.select_option('#space-controls [name=layer]', 'class')
        tab.check('#space-controls [name=graph]')
        tab.click('#space-track svg', position={'x': 500, 'y': 20})
        _write('space.png', _shot(tab, '#space'))
        tab.uncheck('#space-controls [name=graph]')
        tab.select_option('#space-controls [name=layer]', 'colour')
        _write('run.webp', *_film(tab))
        browser.close()
    noted = {'sha256_of_what_they_show': shown_digest()}
    NOTE.write_text(json.dumps(noted) + '\n', 'utf-8')


def _film(tab: Any) -> list[Image.Image]:
    """Return the drive along the path: the view turns, and the frames that were kept come up."""
    most = int(tab.get_attribute('#space-track input', 'max'))
    pictures = []
    for step in range(STEPS):
        tab.evaluate(
            """number => {
              const input = document.querySelector('#space-track input');
              input.value = number;
              input.dispatchEvent(new Event('input'));
            }""",
            round(step * most / (STEPS - 1)),
        )
        tab.focus('#space-canvas')
        tab.keyboard.press('ArrowRight')
        shot = _shot(tab, '.space').convert('RGB')
        pictures.append(shot.resize((WIDTH_PX, round(shot.height * WIDTH_PX / shot.width))))
    return pictures


def _shot(tab: Any, place: str) -> Image.Image:
    tab.wait_for_timeout(300)
    return _image(tab.locator(place).screenshot(timeout=120_000))


def _image(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert('RGB')


def _write(name: str, first: Image.Image, *others: Image.Image) -> None:
    drawn = io.BytesIO()
    if others:
        more = {'save_all': True, 'append_images': others, 'duration': FRAME_MS, 'loop': 0}
        first.save(drawn, 'WEBP', quality=60, method=4, **more)
    else:
        first.save(drawn, 'PNG', optimize=True)
    (FOLDER / name).write_bytes(drawn.getvalue())


if __name__ == '__main__':
    make_pictures(Path(sys.argv[1]) / PAGE)
