"""Furnished apartments from a seed; the steps of a table furnish the rooms of each kind.

A step names a `piece` and its place: with its back at a `wall` and so many metres of free floor in
front of it, in the room (`free`, with margins along x and y), on a wall at a height (`hang`),
`before` or `beside` a piece that the room has, or in the middle of its support (`center_of`, if
the room has that piece). A step that hangs a piece `above` another is left out if that found no
place, and one `unless` another if that found one. If a piece found no place that the room `must`
have, all is drawn again. Other steps `put` pieces onto the supports (`places`) of a piece in turn,
put some `around` it, or put up a `row` of pieces.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from osmabench_ros.errors import SceneError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.apartment import placement
from osmabench_ros.scenes.apartment.finishes import Style
from osmabench_ros.scenes.apartment.layout import FloorPlan, draw_plan
from osmabench_ros.scenes.apartment.pieces import Piece, build, get_piece_classes
from osmabench_ros.scenes.apartment.structure import build_passages, build_room_shell
from osmabench_ros.scenes.apartment.tables import evaluate, naming_keys, read_room
from osmabench_ros.scenes.scene import Light, Room, Scene, SceneObject, make_triple
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import AttributeValue

Step = Mapping[str, Any]
STRUCTURE = ('wall', 'floor', 'ceiling', 'door', 'door frame', 'window')

APARTMENT_LABELS = LabelSet.from_names('apartment', get_piece_classes().values(), STRUCTURE)


WARM = (1.0, 0.93, 0.82)
NEUTRAL = (1.0, 0.98, 0.95)
BELOW_CEILING_LAMP_M = 0.06
ABOVE_SHADE_M = 0.04
FILL_HEIGHT_M = 1.5
FILL_INTENSITY = 0.18

_INTENSITY = {'ceiling lamp': 3.2, 'floor lamp': 1.4}


def make_room_lights(
    placed: Sequence[placement.PlacedPiece], rooms: tuple[Room, ...]
) -> tuple[Light, ...]:
    """Return the lamps' lights, just outside their shades, then one fill light a room."""
    lights = []
    for item in placed:
        kind = item.piece.class_name
        if kind not in _INTENSITY:
            continue
        room = next(room for room in rooms if room.id == item.room_id)
        x, y, z = make_triple(item.pose.translation)
        hangs = kind == 'ceiling lamp'
        # Brighter in rooms above 12 square metres, so that their corners are lit.
        size = float(np.sqrt(np.prod(room.box.size[:2]) / 12.0).clip(0.7, 1.5)) if hangs else 1.0
        z += -BELOW_CEILING_LAMP_M if hangs else item.piece.size[2] + ABOVE_SHADE_M
        lights.append(
            Light(
                f'{kind} {room.name}',
                position=(x, y, z),
                color=NEUTRAL if hangs else WARM,
                intensity=_INTENSITY[kind] * size,
                room_id=room.id,
            )
        )
    for room in rooms:
        x, y, _ = room.box.center
        place = make_triple([x, y, room.box.minimum[2] + FILL_HEIGHT_M])
        fill = Light(f'fill {room.name}', position=place, intensity=FILL_INTENSITY, lamp=False)
        lights.append(replace(fill, room_id=room.id))
    return tuple(lights)


# Part of the scene's digest; raised whenever the same seed gives another apartment.
VERSION = 1

ATTEMPTS = 20


def generate_apartment(seed: int) -> Scene:
    """Generate the apartment of a seed, always the same one; SceneError if it is negative."""
    return assemble(seed, *draw_apartment(seed))


def draw_apartment(seed: int) -> tuple[FloorPlan, list[placement.PlacedPiece]]:
    """Draw a floor plan, and its pieces in the order of their instance ids; raises likewise."""
    if seed < 0:
        raise SceneError(f'the seed of an apartment must be 0 or more, not {seed}')
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng([seed, attempt])
        plan = draw_plan(rng)
        with suppress(placement.NoSpaceError):
            return plan, fill_plan(plan, Style(rng), lambda _, *room: room_furniture(*room))
    raise SceneError(f'no apartment fits its furniture for seed {seed}; choose another seed')


def fill_plan(
    plan: FloorPlan,
    style: Style,
    furnish_room: Callable[[int, placement.RoomSpace, Style], Sequence[placement.PlacedPiece]],
) -> list[placement.PlacedPiece]:
    """Build the passages and rooms of a plan, and furnish each room by its number and space."""
    spaces = [placement.RoomSpace(room, plan.height_m) for room in plan.rooms]
    placed = build_passages(plan, spaces, style)
    for number, space in enumerate(spaces):
        placed += build_room_shell(space.plan, plan.height_m, style)
        placed += furnish_room(number, space, style)
    return placed


def room_furniture(space: placement.RoomSpace, style: Style) -> list[placement.PlacedPiece]:
    """Furnish a room by its kind, again until all it needs has room; or NoSpaceError."""
    for _ in range(ATTEMPTS):
        furnisher = placement.Furnisher(space.copy(), style)
        with suppress(placement.NoSpaceError):
            furnish(space.plan.label, furnisher)
            return furnisher.placed
    raise placement.NoSpaceError


def assemble(seed: int, plan: FloorPlan, placed: Sequence[placement.PlacedPiece]) -> Scene:
    """Return the scene of a furnished floor plan."""
    count: Counter[str] = Counter()
    objects = []
    for number, item in enumerate(placed, start=1):
        piece = item.piece
        count[piece.class_name] += 1
        lengths = zip(('width_m', 'depth_m', 'height_m'), piece.size, strict=True)
        attributes: dict[str, AttributeValue] = {
            'color': piece.color,
            'material': piece.material,
            **{name: round(value, 3) for name, value in lengths},
        }
        objects.append(
            SceneObject(
                number,
                f'{piece.class_name.replace(" ", "_")}_{count[piece.class_name]:02d}',
                APARTMENT_LABELS.id_of(piece.class_name),
                piece.meshes,
                item.pose,
                attributes,
                item.room_id,
            )
        )
    rooms = _build_rooms(plan)
    digest = hashlib.sha256(f'osmabench apartment {VERSION} seed {seed}'.encode()).hexdigest()
    return Scene(
        'apartment',
        f'seed_{seed}',
        APARTMENT_LABELS,
        tuple(objects),
        rooms,
        make_room_lights(placed, rooms),
        ambient=0.12,
        source_sha256=digest,
    )


def _build_rooms(plan: FloorPlan) -> tuple[Room, ...]:
    """Return all rooms; a second bedroom is called so."""
    count: Counter[str] = Counter()
    rooms = []
    for room in plan.rooms:
        count[room.label] += 1
        name = room.label if count[room.label] == 1 else f'{room.label} {count[room.label]}'
        low = np.array([*room.inner_low, 0.0])
        high = np.array([*room.inner_high, plan.height_m])
        rooms.append(Room(room.id, name, room.label, AxisAlignedBox(low, high)))
    return tuple(rooms)


def furnish(label: str, furnisher: placement.Furnisher) -> None:
    """Furnish a room by its kind; NoSpaceError if a piece that it must have finds no place."""
    style = furnisher.style
    plan = furnisher.space.plan
    row = read_room(label)
    x, y = (plan.low + plan.high) / 2
    furnisher.ceiling(build('ceiling lamp', style), float(x), float(y))
    with naming_keys('rooms', f'room "{label}"'):
        if row['curtains']:
            furnisher.hang_curtains(style.draw(row['curtains'], {}))
        room = _Room(furnisher)
        for step in row['steps']:
            room.take(step)


class _Room:
    """A room and its pieces by name; one that found no place is None."""

    def __init__(self, furnisher: placement.Furnisher) -> None:
        self._furnisher, self._style = furnisher, furnisher.style
        self._placed: dict[str, placement.PlacedPiece | None] = {}

    def take(self, step: Step) -> None:
        """Take one step."""
        if 'row' in step:
            self._place_row(step)
        elif 'around' in step:
            self._place_around(step)
        elif 'put' in step:
            self._put(step)
        elif not self._placed.get(step.get('unless', '')):
            self._place(step)

    def _place(self, step: Step) -> None:
        if 'above' in step and self._placed[step['above']] is None:
            return
        other = self._placed.get(step.get('before', ''))
        names = dict(zip(('width', 'depth'), other.piece.size, strict=False)) if other else {}
        given = {key: self._style.draw(item, names) for key, item in step.get('given', {}).items()}
        item = self._find_place(step, build(step['piece'], self._style, **given))
        self._placed[step['piece']] = self._furnisher.must(item) if 'must' in step else item

    def _find_place(self, step: Step, piece: Piece) -> placement.PlacedPiece | None:
        furnisher = self._furnisher
        other = {key: self._placed.get(name) for key, name in step.items() if key in _OTHERS}
        match {**step, **other}:
            case {'center_of': placement.PlacedPiece() as carrier}:
                item = furnisher.place_centrally(carrier, piece)
                if 'blocks' in step:
                    furnisher.space.take(placement.compute_footprint_box(item.piece, item.pose))
                return item
            case {'before': placement.PlacedPiece() as carrier, 'gap': gap}:
                return furnisher.before(carrier, piece, gap, evaluate(step.get('turn', 0.0), {}))
            case {'beside': placement.PlacedPiece() as carrier, 'side': side}:
                return furnisher.beside(carrier, piece, side)
            case {'hang': bottom_m}:
                return furnisher.hang(piece, bottom_m, other.get('above'))
            case {'free': [along, across]}:
                return furnisher.free(piece, (along, across))
        corner = step.get('corner', False)
        reserve = step.get('reserve', True)
        return furnisher.wall(piece, step['wall'], corner, reserve)

    def _put(self, step: Step) -> None:
        carriers = [step['to']] if isinstance(step['to'], str) else step['to']
        carrier = next((self._placed[name] for name in carriers if self._placed[name]), None)
        levels = [[level] for level in range(step.get('levels', 0))]
        for places in levels or [step.get('places', [0])]:
            for i, name in enumerate(self._choose_pieces(step['put'])):
                piece = build(name, self._style)
                place = places[i % len(places)]
                facing = step.get('facing', True)
                self._placed[name] = self._furnisher.put(carrier, piece, place, facing)

    def _choose_pieces(self, items: Sequence[Any]) -> list[str]:
        """Return names of pieces, where some are left to chance."""
        chosen = []
        for item in items:
            match item:
                case {'one_of': names}:
                    chosen.append(self._style.pick(names))
                case {'chance': chance, 'then': name}:
                    other = item.get('else')
                    chosen.append(name if self._style.rng.random() < chance else other)
                case _:
                    chosen.append(item)
        return [name for name in chosen if name]

    def _place_around(self, step: Step) -> None:
        """Stand four equal pieces at the long sides of one, looking at it."""
        table, style = self._placed[step['around']], self._style
        if table is None:
            return
        width, depth, _ = table.piece.size
        seed = int(style.rng.integers(2**31))
        for sign in (-1, 1):
            for x in (-width / 4, width / 4):
                piece = build(step['piece'], Style(np.random.default_rng(seed)))
                offset = sign * (depth / 2 + 0.06 + piece.size[1] / 2)
                turn = np.pi if sign < 0 else 0.0
                self._furnisher.at(piece, table.pose @ Pose.from_yaw(turn, (x, offset, 0.0)))

    def _place_row(self, step: Step) -> None:
        """Stand pieces side by side at one wall or, where that fails, some at other walls."""
        furnisher, names = self._furnisher, list(step['row'])
        given = {key: self._style.draw(item, {}) for key, item in step['given'].items()}
        pieces = {name: build(name, self._style, **given) for name in names}
        if self._style.rng.random() < 0.5:
            names.reverse()
        for split in (4, 1, 3, 2):
            first = furnisher.row([pieces[name] for name in names[:split]])
            if first is None:
                continue
            self._placed |= dict(zip(names[:split], first, strict=True))
            for name in names[split:]:
                item = furnisher.wall(pieces[name], 0.8, corner=True)
                self._placed[name] = furnisher.must(item)
            return
        furnisher.must(None)


_OTHERS = ('center_of', 'before', 'beside', 'above')
