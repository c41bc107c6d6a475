"""The pictures of docs/ show today's page."""

import json
from pathlib import Path

from PIL import Image
from support.benchmark_scripts import load_script

DOCS = Path(__file__).parents[1] / 'docs'


def test_the_pictures_are_of_todays_page():
    pictures = load_script(DOCS / 'pictures.py')
    noted = json.loads(pictures.NOTE.read_text('utf-8'))
    assert noted['sha256_of_what_they_show'] == pictures.shown_digest(), 'make pictures'
    film = DOCS / 'run.webp'
    assert film.stat().st_size < pictures.LARGEST_BYTES
    with Image.open(film) as opened:
        assert getattr(opened, 'n_frames', 1) == pictures.STEPS
