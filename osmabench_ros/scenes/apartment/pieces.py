"""Build the pieces of the apartment from their tables.

Each table holds `pieces` and, for several of them, `shapes`. Lengths are metres, or formulas over
the names in `draw` and `let`. A piece is upright, with its front towards -y.

========  =====================================================================================
class     class of the object, by default the name of the piece
draw      finishes and lengths, in the order in which `Style.draw` draws those not given
main      the finish that attributes name and parts have that name none; by default the first
let       names of lengths that follow from others; of a piece, shape or part
like      the shape of all parts and supports that the piece does not list
parts     a `box` between corners, or one of `_SOLIDS`; `of` a finish, `at` a point, with a `turn`
          about x, y and z
carries   surfaces: the middle of a `top` or of one `in` or `under` the piece, its `size` along x
          and y, and how high the objects on it may be (`clear`)
use       puts the parts or supports of a shape here, `with` the lengths that it `takes`
each      repeats a part or support, with names that take the values of lists side by side, or
          count up from 0
row       repeats a part so often, each starting where the one before ends along x
fixture   whether specifications cannot ask for the piece
hangs_at_m, stands_free   where specifications put the piece that say nothing about it
========  =====================================================================================
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.finishes import Finish, Style, find_finish, get_material
from osmabench_ros.scenes.apartment.tables import Names, evaluate, naming_keys, read_table
from osmabench_ros.scenes.scene import Mesh, make_triple
from osmabench_ros.semantics.scene_graph import RelationType


@dataclass(frozen=True)
class Support:
    """A surface of a piece, in its frame, that carries objects; metres, `size` along x and y.

    `center` is its middle, `clearance_m` the free height above; objects there are ON, IN or UNDER.
    """

    center: tuple[float, float, float]
    size: tuple[float, float]
    clearance_m: float = 0.6
    relation: RelationType = RelationType.ON


@dataclass(frozen=True, eq=False)
class Piece:
    """A finished object, one mesh per finish; local frame: z up from its bottom, front towards -y.

    The footprint is centred on the origin; `size` are the extents along x, y and z in metres.
    """

    class_name: str
    meshes: tuple[Mesh, ...]
    size: tuple[float, float, float]
    color: str
    material: str
    supports: tuple[Support, ...] = ()


class Body:
    """Collects solids with finishes and makes a `Piece` of them."""

    def __init__(self) -> None:
        self._parts: dict[Finish, list[solids.Solid]] = {}

    def add(
        self,
        solid: solids.Solid,
        finish: Finish,
        at: ArrayLike = (0.0, 0.0, 0.0),
        tilt_rad: tuple[float, float, float] | None = None,
    ) -> None:
        """Add a solid, turned about x, y, z in this order, then shifted."""
        rotation = None if tilt_rad is None else Rotation.from_euler('xyz', tilt_rad).as_matrix()
        self._parts.setdefault(finish, []).append(solid.moved(at, rotation))

    def box(self, low: Sequence[float], high: Sequence[float], finish: Finish) -> None:
        """Add a cuboid between two corners."""
        a = np.asarray(low, float)
        b = np.asarray(high, float)
        self.add(solids.box(b - a), finish, (a + b) / 2)

    def piece(self, class_name: str, main: Finish, supports: Iterable[Support] = ()) -> Piece:
        """Finish: centre the footprint, put the bottom on z = 0, merge parts by finish."""
        merged = {finish: solids.join_solids(parts) for finish, parts in self._parts.items()}
        low = np.min([item.vertices.min(axis=0) for item in merged.values()], axis=0)
        high = np.max([item.vertices.max(axis=0) for item in merged.values()], axis=0)
        shift = -np.array([(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, low[2]])
        return Piece(
            class_name,
            tuple(
                solids.make_mesh(
                    replace(solid, vertices=solid.vertices + shift),
                    get_material(finish),
                    finish.tile_m,
                )
                for finish, solid in merged.items()
            ),
            make_triple(high - low),
            main.color,
            main.material,
            tuple(replace(item, center=make_triple(item.center + shift)) for item in supports),
        )


_FILES = ('bathroom', 'building', 'decoration', 'electronics', 'kitchen', 'seating', 'storage',
          'tableware')  # fmt: skip
_RELATIONS = {'top': RelationType.ON, 'in': RelationType.IN, 'under': RelationType.UNDER}
_OPTIONS = ('segments', 'top', 'radius', 'exponent', 'fitted', 'depth', 'count')


@cache
def _read_rows(section: str) -> Mapping[str, Mapping[str, Any]]:
    """Return all pieces, or all shapes."""
    tables = [read_table(name).get(section, {}) for name in _FILES]
    return {name: row for table in tables for name, row in table.items()}


def get_piece_row(name: str) -> Mapping[str, Any]:
    """Return the row of a piece."""
    return _read_rows('pieces')[name]


@cache
def get_piece_classes() -> Mapping[str, str]:
    """Return the class of every piece, by name."""
    return {name: row.get('class', name) for name, row in _read_rows('pieces').items()}


@cache
def list_specifiable_classes() -> tuple[str, ...]:
    """Return the classes that a specification can ask for, which are names of pieces."""
    names = _read_rows('pieces').items()
    return tuple(name for name, row in names if 'fixture' not in row and 'class' not in row)


def build(name: str, style: Style, **given: Any) -> Piece:
    """Return a piece of a table; lengths and finishes that are given are not drawn."""
    row = get_piece_row(name)
    names = dict(given)
    file = next(file for file in _FILES if name in read_table(file)['pieces'])
    with naming_keys(file, f'piece "{name}"'):
        for key, wanted in row.get('draw', {}).items():
            if key not in given:
                names[key] = style.draw(wanted, names)
        finishes = (key for key in row.get('draw', {}) if isinstance(names[key], Finish))
        main = names[row.get('main') or next(finishes, 'main')]
        names = _extend_names({**names, 'of': main}, row)
        inherited = [{'use': row['like']}] if 'like' in row else []
        body = Body()
        for part, local in _iterate_leaves('parts', row.get('parts', inherited), names, style):
            _add(body, part, local)
        carries = _iterate_leaves('carries', row.get('carries', inherited), names, style)
        supports = [_support(item, local) for item, local in carries]
    return body.piece(get_piece_classes()[name], main, supports)


def _extend_names(
    names: Names, row: Mapping[str, Any], more: Names | None = None
) -> dict[str, Any]:
    """Return names with some more and those that a row defines."""
    found = {**names, **(more or {})}
    for key, formula in row.get('let', {}).items():
        found[key] = evaluate(formula, found)
    if isinstance(row.get('of'), str):
        found['of'] = find_finish(row['of'], found)
    return found


def _iterate_leaves(
    section: str, items: Sequence[Mapping[str, Any]], names: Names, style: Style
) -> Iterator[tuple[Mapping[str, Any], Names]]:
    """Yield every solid or support with the names that hold for it."""
    for item in items:
        for repeated in _repeat_names(item, names, style):
            local = _extend_names(names, item, repeated)
            if 'use' in item:
                shape = _read_rows('shapes')[item['use']]
                given = evaluate(item.get('with', []), local)
                inner = _extend_names(
                    local, shape, dict(zip(shape.get('takes', ()), given, strict=True))
                )
                yield from _iterate_leaves(section, shape.get(section, ()), inner, style)
            elif section in item:
                yield from _iterate_leaves(section, item[section], local, style)
            else:
                yield item, local


def _repeat_names(item: Mapping[str, Any], names: Names, style: Style) -> Iterator[Names]:
    """Yield the names of each repetition of a part or support."""
    if 'row' in item:
        x = 0.0
        for number in range(names[item['row']]):
            drawn = {key: style.draw(wanted, names) for key, wanted in item['draw'].items()}
            yield {**drawn, 'x': x, 'of': names[item['of'][number % len(item['of'])]]}
            x += drawn['width'] + item['gap']
        return
    columns = {key: evaluate(value, names) for key, value in item.get('each', {}).items()}
    lists = [range(column) if isinstance(column, int) else column for column in columns.values()]
    if not lists:
        yield {}
    for values in zip(*lists, strict=True):
        yield dict(zip(columns, values, strict=True))


def _support(item: Mapping[str, Any], names: Names) -> Support:
    place = next((key for key in _RELATIONS if key in item), 'top')
    x, y, z = evaluate(item[place], names)
    width, depth = evaluate(item['size'], names)
    return Support((x, y, z), (width, depth), evaluate(item['clear'], names), _RELATIONS[place])


def _add(body: Body, part: Mapping[str, Any], names: Names) -> None:
    kind = next((key for key in _SOLIDS if key in part), 'box')
    size = evaluate(part[kind], names)
    finish: Finish = names['of']
    if kind == 'box':
        low, high = size
        body.box(low, high, finish)
        return
    options = {key: evaluate(part[key], names) for key in _OPTIONS if key in part}
    turn = evaluate(part['turn'], names) if 'turn' in part else None
    place = evaluate(part.get('at', [0, 0, 0]), names)
    body.add(_SOLIDS[kind](size, **options), finish, place, turn)


def _make_folds(size: Sequence[float], depth: float, count: int) -> solids.Solid:
    """Return a sheet of a width, height and thickness with so many folds, as deep to each side."""
    width_m, height_m, thickness_m = size
    x = np.linspace(-width_m / 2, width_m / 2, 33)
    wave = np.column_stack([x, depth * np.sin(2 * np.pi * x / width_m * count)])
    return solids.ribbon(wave, height_m, thickness_m)


# Makers by the key that holds the size: a block around its middle, a radius and height, ends.
_SOLIDS: dict[str, Callable[..., solids.Solid]] = {
    'block': solids.box,
    'cylinder': lambda size, **options: solids.cylinder(*size, **options),
    'rod': lambda size, **options: solids.rod(*size, **options),
    'lathe': solids.lathe,
    'ellipsoid': solids.ellipsoid,
    'folds': _make_folds,
}
