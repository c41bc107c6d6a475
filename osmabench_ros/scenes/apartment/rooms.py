"""The furniture of each kind of room."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.apartment.body import Piece
from osmabench_ros.scenes.apartment.finishes import Style
from osmabench_ros.scenes.apartment.furnisher import Furnisher, Placed
from osmabench_ros.scenes.apartment.pieces import bathroom as bath
from osmabench_ros.scenes.apartment.pieces import decoration as deco
from osmabench_ros.scenes.apartment.pieces import electronics as tech
from osmabench_ros.scenes.apartment.pieces import kitchen as kit
from osmabench_ros.scenes.apartment.pieces import seating, storage
from osmabench_ros.scenes.apartment.pieces import tableware as ware
from osmabench_ros.scenes.apartment.placement import footprint_box

Builder = Callable[[Style], Piece]


def _center(furnisher: Furnisher) -> tuple[float, float]:
    plan = furnisher.space.plan
    x, y = (plan.low + plan.high) / 2
    return float(x), float(y)


def _basics(furnisher: Furnisher, curtains: bool = True) -> None:
    style = furnisher.style
    x, y = _center(furnisher)
    furnisher.ceiling(deco.ceiling_lamp(style), x, y)
    if curtains:
        cloth = style.fabric('beige', 'red', 'blue', 'green', 'gray', 'white')
        furnisher.hang_curtains(lambda width, height: deco.curtain(width, height, cloth))


def _fill_shelf(furnisher: Furnisher, shelf: Placed | None, levels: int) -> None:
    rng = furnisher.style.rng
    extras: tuple[Builder, ...] = (
        ware.vase, deco.small_plant, ware.candle, tech.speaker, ware.bowl, ware.book,
    )  # fmt: skip
    for level in range(levels):
        chosen = [ware.standing_books, extras[int(rng.integers(len(extras)))]]
        if rng.random() < 0.4:
            chosen.append(ware.book)
        furnisher.put_each(shelf, chosen, (level,))


def _fruit(furnisher: Furnisher, table: Placed | None) -> None:
    bowl = furnisher.put(table, ware.bowl(furnisher.style), facing=False)
    furnisher.put_each(bowl, (ware.apple, ware.orange, ware.apple), facing=False)


def _dining_group(furnisher: Furnisher) -> Placed | None:
    style = furnisher.style
    table = furnisher.free(seating.dining_table(style), (0.35, 0.85))
    if table is None:
        table = furnisher.wall(seating.dining_table(style), 0.8)
    if table is None:
        return None
    width, depth, _ = table.piece.size
    seed = int(style.rng.integers(2**31))
    for sign in (-1, 1):
        for x in (-width / 4, width / 4):
            chair = seating.chair(Style(np.random.default_rng(seed)))
            offset = sign * (depth / 2 + 0.06 + chair.size[1] / 2)
            turn = np.pi if sign < 0 else 0.0
            furnisher.at(chair, table.pose @ Pose.from_yaw(turn, (x, offset, 0.0)))
    return table


def kitchen(furnisher: Furnisher) -> None:
    """Furnish a kitchen: a run of units, an open cabinet, a place to eat."""
    style = furnisher.style
    _basics(furnisher)
    front = style.wood('white', 'light brown', 'dark gray', 'green', 'navy')
    top = style.stone()
    units = {
        'fridge': kit.refrigerator(style),
        'work': kit.counter(style, front, top),
        'wash': kit.sink_counter(style, front, top),
        'cook': kit.stove(style),
    }
    placed = _kitchen_run(furnisher, units)
    sink = furnisher.must(furnisher.centered(placed['wash'], kit.kitchen_sink(style)))
    furnisher.put_each(sink, (ware.plate, ware.cup), facing=False)
    furnisher.put(placed['cook'], kit.pot(style), 1)
    furnisher.put(placed['cook'], kit.pan(style), 2)
    furnisher.put_each(placed['work'], (kit.microwave, kit.kettle, kit.toaster, kit.knife_block))
    furnisher.hang(kit.range_hood(style), 1.6, placed['cook'])
    hung = furnisher.hang(storage.wall_cabinet(style), 1.5, placed['work'])
    furnisher.put_each(hung, (ware.plate, ware.cup, ware.cup, ware.bowl), (0, 1))
    furnisher.put(placed['fridge'], storage.carton(style))
    cabinet = furnisher.wall(storage.cabinet(style))
    furnisher.put_each(cabinet, (ware.bottle, ware.bottle, ware.plate, kit.pot), (1, 2))
    furnisher.put_each(cabinet, (kit.cutting_board, ware.bottle))
    table = _dining_group(furnisher)
    _fruit(furnisher, table or cabinet)
    furnisher.put_each(table, (ware.plate, ware.cup, ware.plate, ware.cup, ware.vase), (0,), False)
    furnisher.wall(storage.trash_can(style), 0.3)
    furnisher.hang(deco.clock(style), 1.75)
    furnisher.hang(deco.painting(style), 1.4)


def _kitchen_run(furnisher: Furnisher, units: dict[str, Piece]) -> dict[str, Placed]:
    names = list(units)
    if furnisher.style.rng.random() < 0.5:
        names.reverse()
    for split in (4, 1, 3, 2):
        first = furnisher.row([units[name] for name in names[:split]])
        if first is None:
            continue
        placed = dict(zip(names[:split], first, strict=True))
        for name in names[split:]:
            placed[name] = furnisher.must(furnisher.wall(units[name], 0.8, corner=True))
        return placed
    furnisher.must(None)
    return {}


def living_room(furnisher: Furnisher) -> None:
    """Furnish a living room: sofa, screen, shelves, a rug with a low table."""
    style = furnisher.style
    _basics(furnisher)
    stand = furnisher.must(furnisher.wall(storage.tv_stand(style), 1.0))
    furnisher.hang(tech.television(style), 0.95, stand)
    furnisher.put_each(stand, (tech.speaker, deco.small_plant))
    furnisher.put_each(stand, (storage.carton, ware.book, ware.book), (1, 2))
    sofa = furnisher.must(furnisher.wall(seating.sofa(style), 1.5, reserve=False))
    furnisher.put_each(sofa, (seating.cushion, seating.cushion))
    rug = deco.rug(style, sofa.piece.size[0] - 0.1, style.uniform(1.0, 1.2))
    rug_placed = furnisher.before(sofa, rug, 0.12, 0.0)
    low = seating.coffee_table(style)
    if rug_placed is not None:
        table = furnisher.centered(rug_placed, low)
        if table is not None:
            furnisher.space.take(footprint_box(table.piece, table.pose))
    else:
        table = furnisher.before(sofa, low, 0.45, 0.0)
    furnisher.put_each(table, (tech.remote_control, ware.book, ware.cup, ware.candle), (0,), False)
    _fruit(furnisher, table)
    shelf = furnisher.wall(storage.bookshelf(style))
    _fill_shelf(furnisher, shelf, 5)
    furnisher.put(shelf, deco.small_plant(style), 5)
    chair = furnisher.wall(seating.armchair(style), 0.6)
    furnisher.put(chair, seating.cushion(style))
    furnisher.wall(deco.floor_lamp(style), 0.3, corner=True)
    furnisher.wall(deco.plant(style), 0.3, corner=True)
    cabinet = furnisher.wall(storage.cabinet(style))
    furnisher.put_each(cabinet, (ware.vase, ware.candle))
    furnisher.put_each(cabinet, (ware.standing_books, ware.bottle, ware.bowl), (1, 2))
    for _ in range(2):
        furnisher.hang(deco.painting(style), 1.35)
    furnisher.hang(deco.clock(style), 1.8)


def bedroom(furnisher: Furnisher) -> None:
    """Furnish a bedroom: bed with nightstands, wardrobe, dresser with mirror."""
    style = furnisher.style
    _basics(furnisher)
    bed = furnisher.must(furnisher.wall(seating.bed(style), 0.6))
    furnisher.put_each(bed, (seating.pillow, seating.pillow), (0, 1))
    furnisher.put(bed, seating.blanket(style), 2)
    for side in (-1, 1):
        stand = furnisher.beside(bed, seating.nightstand(style), side)
        furnisher.put(stand, deco.table_lamp(style))
        extra = tech.alarm_clock(style) if side < 0 else ware.book(style)
        furnisher.put(stand, extra)
        furnisher.put(stand, ware.book(style), 1)
    wardrobe = furnisher.must(furnisher.wall(storage.wardrobe(style), 0.6, corner=True))
    furnisher.put(wardrobe, storage.carton(style))
    dresser = furnisher.wall(storage.dresser(style))
    furnisher.put_each(dresser, (ware.vase, ware.candle, ware.book))
    if dresser is not None:
        furnisher.hang(bath.mirror(style), 1.25, dresser)
    basket = furnisher.wall(storage.basket(style), 0.3, corner=True)
    furnisher.put(basket, ware.clothes(style), facing=False)
    furnisher.free(deco.rug(style, 1.1, 0.7), (0.05, 0.05))
    stool = furnisher.wall(seating.stool(style), 0.3)
    furnisher.put(stool, ware.book(style))
    furnisher.hang(deco.painting(style), 1.35)
    furnisher.hang(deco.clock(style), 1.8)


def bathroom(furnisher: Furnisher) -> None:
    """Furnish a bathroom: tub, toilet, basin with mirror, washing machine."""
    style = furnisher.style
    _basics(furnisher, curtains=False)
    tub = furnisher.must(furnisher.wall(bath.bathtub(style), 0.4, corner=True))
    basin = furnisher.must(furnisher.wall(bath.washbasin(style), 0.5))
    toilet = furnisher.must(furnisher.wall(bath.toilet(style), 0.45))
    furnisher.put(toilet, bath.toilet_paper(style))
    furnisher.put(basin, bath.soap_dispenser(style), 0)
    furnisher.put(basin, bath.toothbrush_cup(style), 1)
    furnisher.hang(bath.mirror(style), 1.2, basin)
    machine = furnisher.wall(bath.washing_machine(style), 0.5, corner=True)
    furnisher.put(machine, storage.carton(style))
    basket = furnisher.wall(storage.basket(style), 0.2, corner=True)
    furnisher.put(basket, ware.clothes(style), facing=False)
    furnisher.before(tub, deco.rug(style, 0.75, 0.45), 0.06, 0.0)
    furnisher.hang(bath.towel_rail(style), 0.8)
    furnisher.wall(storage.trash_can(style), 0.2, corner=True)


def study(furnisher: Furnisher) -> None:
    """Furnish a study: desk with computer, shelf, printer."""
    style = furnisher.style
    _basics(furnisher)
    desk = furnisher.must(furnisher.wall(seating.desk(style), 0.9, reserve=False))
    furnisher.put_each(desk, (tech.monitor, tech.keyboard, tech.mouse, deco.table_lamp, ware.cup))
    furnisher.before(desk, seating.office_chair(style), 0.08, np.pi)
    shelf = furnisher.wall(storage.bookshelf(style))
    _fill_shelf(furnisher, shelf, 5)
    furnisher.put(shelf, deco.globe(style), 5)
    cabinet = furnisher.wall(storage.cabinet(style))
    furnisher.put_each(cabinet, (tech.printer, tech.laptop))
    furnisher.put_each(cabinet, (storage.carton, ware.standing_books), (1, 2))
    furnisher.wall(deco.floor_lamp(style), 0.3, corner=True)
    bin_ = furnisher.put(desk, storage.trash_can(style), 1)
    furnisher.put(bin_, ware.apple(style), facing=False)
    furnisher.wall(deco.plant(style), 0.3, corner=True)
    furnisher.free(deco.rug(style, 1.2, 0.8), (0.05, 0.05))
    furnisher.hang(deco.painting(style), 1.4)
    furnisher.hang(deco.clock(style), 1.8)


def hallway(furnisher: Furnisher) -> None:
    """Furnish a hallway: coats, shoes, a narrow table with a mirror."""
    style = furnisher.style
    _basics(furnisher, curtains=False)
    rack = furnisher.wall(storage.shoe_rack(style), 0.3)
    furnisher.put_each(rack, (ware.shoes, ware.shoes, ware.shoes), (0, 1))
    table = furnisher.wall(seating.console_table(style), 0.3)
    furnisher.put_each(table, (ware.vase, ware.bowl, ware.candle))
    furnisher.put(
        table, storage.basket(style) if style.rng.random() < 0.3 else ware.shoes(style), 1
    )
    if table is not None:
        furnisher.hang(bath.mirror(style), 1.2, table)
    furnisher.hang(deco.coat_rack(style), 0.95)
    furnisher.wall(deco.plant(style), 0.0, corner=True)
    for _ in range(2):
        furnisher.hang(deco.painting(style), 1.4)


FURNISH: dict[str, Callable[[Furnisher], None]] = {
    'kitchen': kitchen,
    'living room': living_room,
    'bedroom': bedroom,
    'bathroom': bathroom,
    'study': study,
    'hallway': hallway,
}
