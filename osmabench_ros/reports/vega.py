"""One grammar of charts: Vega-Lite specifications that take their colours from the page."""

import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import altair as alt
import vl_convert
import yaml

# A Vega-Lite specification.
Chart = dict[str, Any]

# Charts by name, those that there are data for.
Charts = Mapping[str, Chart]

STYLE = Path(__file__).with_name('page') / 'templates' / 'page.css'
# Colours of the page, light or dark; a browser looks them up when it draws.
INK = 'var(--ink)'
MUTED = 'var(--muted)'
SERIES = tuple(f'var(--series-{number})' for number in range(1, 7))

_STYLE = Path(__file__).with_name('chart_style.yaml')
_VEGA_LITE = '.'.join(alt.SCHEMA_VERSION.removeprefix('v').split('.')[:2])
# Start of the checksum of a name; from it each method of this package has another colour, and the
# methods of the demonstration have colours that are far apart.
_START = 18337
# Ends the name of a method that is given the truth.
REFERENCE = ' (reference)'

_IS_REFERENCE = "(indexof(datum.method, '(reference)') > 0)"

alt.data_transformers.disable_max_rows()


def build_specification(chart: alt.TopLevelMixin, description: str) -> Chart:
    """Return a chart as JSON-serialisable Vega-Lite in the style of the page."""
    drawn = _round_numbers(chart.to_dict())
    return {**drawn, 'description': description, 'config': _read_config()}


@cache
def _read_config() -> Chart:
    return dict(yaml.safe_load(_STYLE.read_text(encoding='utf-8')))


def _round_numbers(found: Any) -> Any:
    """Return numbers with the digits that are seen, which halves the data, and no NaN."""
    if isinstance(found, dict):
        return {name: _round_numbers(value) for name, value in found.items()}
    if isinstance(found, list):
        return [_round_numbers(item) for item in found]
    if isinstance(found, float):
        return float(f'{found:.6g}') if math.isfinite(found) else None
    return found


def assign_method_colors(names: Iterable[str]) -> dict[str, str]:
    """Return the colours of the methods of a report, those that they have in every report.

    Of two names with the same colour the later in the alphabet gets the next one that is free.
    """
    colors: dict[str, str] = {}
    for name in sorted(set(names)):
        first = zlib.crc32(name.encode(), _START) % len(SERIES)
        own = SERIES[first:] + SERIES[:first]
        colors[name] = next((item for item in own if item not in colors.values()), own[0])
    return colors


def encode_method_color(
    names: Sequence[str], labels: Mapping[str, str] = MappingProxyType({})
) -> alt.Color:
    """Return the colour of marks by their field `method`, which may have other labels."""
    colors = assign_method_colors(names)
    domain = [labels.get(name, name) for name in names]
    return alt.Color('method:N').scale(domain=domain, range=[colors[name] for name in names])


# The text of `interval` in tooltips.
_INTERVAL = (
    "isValid(datum.low) ? format(datum.low, '.4~g') + ' to ' + format(datum.high, '.4~g') : 'none'"
)


def make_base(*encoding: Any, **titles: str) -> alt.Chart:
    """Return a chart without marks; its tooltip has run, fields of `titles`, value, interval."""
    tooltip = [
        *(alt.Tooltip(f'{x}:N', title=title) for x, title in {'run': 'run', **titles}.items()),
        alt.Tooltip('value:Q', format='.4~g'),
        alt.Tooltip('interval:N', title='95 % interval'),
    ]
    return alt.Chart().transform_calculate(interval=_INTERVAL).encode(*encoding, tooltip=tooltip)


def split_base(base: alt.Chart) -> tuple[alt.Chart, alt.Chart, alt.Chart]:
    """Return the chart of the methods, of the references, and of all values with an interval."""
    filters = f'!{_IS_REFERENCE}', _IS_REFERENCE, 'isValid(datum.low)'
    methods, references, bounded = map(base.transform_filter, filters)
    return methods, references, bounded


def draw_level(field: str, **encoding: Any) -> alt.Chart:
    """Return dashed lines at the values of a field."""
    rules = alt.Chart().mark_rule(color=MUTED, strokeDash=[4, 3])
    return rules.transform_filter(f'isValid(datum.{field})').encode(**encoding)


def compute_row_step(pixels: int) -> alt.Step:
    """Return the height of a row of marks side by side."""
    return alt.Step(pixels, **{'for': 'position'})


@cache
def read_vega_script() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script, unmodified."""
    # Its stub lacks that a script of the caller may be left out.
    return str(vl_convert.javascript_bundle(vl_version=_VEGA_LITE))  # type: ignore[call-arg]


def write_images(charts: Charts, folder: Path) -> None:
    """Write charts as SVG, PDF and PNG in the light colours of the page."""
    for name, chart in charts.items():
        light = use_light_colors(chart)
        file = folder / name
        svg = vl_convert.vegalite_to_svg(light, _VEGA_LITE)
        file.with_suffix('.svg').write_text(svg, encoding='utf-8')
        file.with_suffix('.pdf').write_bytes(vl_convert.vegalite_to_pdf(light, _VEGA_LITE))
        png = vl_convert.vegalite_to_png(light, _VEGA_LITE, scale=2)
        file.with_suffix('.png').write_bytes(png)


def use_light_colors(chart: Chart) -> Chart:
    """Return a chart with the colours that the page has on a light ground."""
    colors: dict[str, str] = {}
    for name, color in re.findall(r'--([\w-]+): (#[0-9a-f]{3,6})', STYLE.read_text('utf-8')):
        colors.setdefault(f'var(--{name})', color)
    text = json.dumps(chart)
    text = re.sub(r'var\(--[\w-]+\)', lambda found: colors.get(found[0], found[0]), text)
    return dict(json.loads(text))
