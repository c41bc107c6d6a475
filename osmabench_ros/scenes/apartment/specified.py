"""An apartment that meets a specification, or the sentence that it cannot meet."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from osmabench_ros.errors import SceneError, choose
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes import specification as spec
from osmabench_ros.scenes.apartment.finishes import COLORS, Style
from osmabench_ros.scenes.apartment.generate import assemble, fill_plan
from osmabench_ros.scenes.apartment.layout import draw_row
from osmabench_ros.scenes.apartment.pieces import (
    Piece,
    build,
    get_piece_row,
    list_specifiable_classes,
)
from osmabench_ros.scenes.apartment.placement import Furnisher, PlacedPiece, RoomSpace
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.scene import Material, Scene
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.scene_graph import RelationType

ATTEMPTS = 16
# How much larger the rooms are in each attempt than in the one before.
GROWTH = 1.06

_CARRIED = (spec.SpecifiedRelation.ON, spec.SpecifiedRelation.IN, spec.SpecifiedRelation.UNDER)
# Gaps between the footprints of neighbouring objects, metres.
_BESIDE = {
    spec.SpecifiedRelation.AROUND: (0.05, 0.12),
    spec.SpecifiedRelation.NEXT_TO: (0.05, 0.2),
    spec.SpecifiedRelation.NEAR: (0.4, 0.7),
}

# Footprint from which an object goes to a wall, unless its table lets it be free of walls.
_LARGE_M2 = 0.35


def build_specified_apartment(specification: spec.SceneSpecification, seed: int) -> Scene:
    """Build an apartment with all that a specification says, another one for every seed.

    The rooms hold nothing else but a ceiling lamp each, unless the specification counts those.
    Each attempt is held against the specification by the graph of its meshes.

    Raises
    ------
    SceneError
        With the sentence that the apartment cannot hold, if no attempt holds everything.
    """
    where = f'specification "{specification.name}"'
    _check_classes(specification, where)
    missed: Counter[str] = Counter()
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng([seed, attempt])
        try:
            scene = _try_to_build(specification, seed, rng, GROWTH**attempt)
        except _UnplacedError as error:
            missed[str(error)] += 1
            continue
        failed = [
            fact.sentence
            for fact in spec.facts(specification, build_ground_truth_graph(scene))
            if not fact.holds
        ]
        if not failed:
            return scene
        missed.update(failed[:1])
    sentence = missed.most_common(1)[0][0]
    problem = f'the apartment of seed {seed} cannot hold that {sentence}'
    raise SceneError(f'{where}: {problem}; change it, or choose another seed')


class _UnplacedError(Exception):
    """An object has no place in this attempt; the message is the sentence that asks for it."""


def _check_classes(specification: spec.SceneSpecification, where: str) -> None:
    for room in specification.rooms:
        for group in room.objects:
            label, place = normalised_name(group.label), f'{where}: the {room.label}'
            problem = f'cannot have "{group.label}", which the apartment does not know'
            choose(label, list_specifiable_classes(), SceneError, f'{place} {problem}')
            if group.color:
                problem = f'cannot hold that every {group.called} is {group.color}'
                choose(group.color, COLORS, SceneError, f'{place} {problem}')


def _try_to_build(
    specification: spec.SceneSpecification, seed: int, rng: np.random.Generator, growth: float
) -> Scene:
    labels = [normalised_name(room.label) for room in specification.rooms]
    widths = [growth * _estimate_width_m(room) for room in specification.rooms]
    plan = draw_row(labels, widths, growth * 4.2, rng)

    def furnish_room(number: int, space: RoomSpace, style: Style) -> list[PlacedPiece]:
        return _Room(specification.rooms[number], Furnisher(space, style)).furnish()

    scene = assemble(seed, plan, fill_plan(plan, Style(rng), furnish_room))
    document = specification.model_dump_json(by_alias=True)
    return replace(
        scene,
        name=f'{specification.name}_seed_{seed}',
        source_sha256=hashlib.sha256(f'{scene.source_sha256} {document}'.encode()).hexdigest(),
        specification=specification,
    )


def _estimate_width_m(room: spec.RoomSpecification) -> float:
    """Return a width with room for all objects on the floor of a room."""
    style = Style(np.random.default_rng(0))
    area = sum(
        group.count * float(np.prod(build(normalised_name(group.label), style).size[:2]))
        for group in room.objects
    )
    return float(np.clip(2.6 + area, 3.4, 9.0))


class _Room:
    """Places the groups of one room, carriers and neighbours of others first."""

    def __init__(self, wanted: spec.RoomSpecification, furnisher: Furnisher) -> None:
        self._wanted = wanted
        self._furnisher = furnisher
        self._style = furnisher.style
        self._placed: dict[str, list[PlacedPiece]] = {}

    def furnish(self) -> list[PlacedPiece]:
        """Return everything in the room."""
        if not any(normalised_name(item.label) == 'ceiling lamp' for item in self._wanted.objects):
            self._place_overhead(build('ceiling lamp', self._style), 0, 1)
        for group in self._sort_groups():
            own = [item for item in self._wanted.relations if item.subject == group.called]
            self._placed[group.called] = [
                self._place(self._make_piece(group), group, own, number)
                for number in range(group.count)
            ]
        return self._furnisher.placed

    def _sort_groups(self) -> Iterator[spec.ObjectGroup]:
        """Yield groups after those that they are placed by, larger objects first."""
        needs: dict[str, set[str]] = {group.called: set() for group in self._wanted.objects}
        for item in self._wanted.relations:
            needs[item.subject].update(name for name in item.object if name != item.subject)
        sizes = {
            group.called: float(np.prod(self._make_piece(group).size))
            for group in self._wanted.objects
        }
        while needs:
            ready = [name for name, others in needs.items() if not others & needs.keys()]
            if not ready:
                # Things that are next to each other: whichever is larger.
                ready = list(needs)
            name = max(ready, key=lambda key: sizes[key])
            del needs[name]
            yield self._wanted.group(name)

    def _make_piece(self, group: spec.ObjectGroup) -> Piece:
        """Build a piece of a group, in its colour and material."""
        for _ in range(60):
            piece = build(normalised_name(group.label), self._style)
            if group.material in ('', piece.material):
                is_right = group.color in ('', piece.color)
                return piece if is_right else _dye_piece(piece, group.color)
        raise _UnplacedError(f'every {group.called} is {group.material}')

    def _place(
        self, piece: Piece, group: spec.ObjectGroup, own: Sequence[spec.Statement], number: int
    ) -> PlacedPiece:
        sentence = f'the number of "{group.label}" in the {self._wanted.label} is {group.count}'
        # The carrier of an object decides where it is, then its neighbours do.
        order = [*_CARRIED, spec.SpecifiedRelation.BETWEEN, *_BESIDE]
        main = min(own, key=lambda item: order.index(item.relation) if item.relation in order
                   else len(order), default=None)  # fmt: skip
        if main is None:
            found = self._place_anywhere(piece, number, group.count)
        else:
            found, sentence = self._place_related(piece, main, number), main.sentence
        if found is None:
            raise _UnplacedError(sentence)
        return found

    def _place_related(
        self, piece: Piece, item: spec.Statement, number: int
    ) -> PlacedPiece | None:
        relation, furnisher = item.relation, self._furnisher
        if relation is spec.SpecifiedRelation.AGAINST_WALL:
            return furnisher.wall(piece, 0.3)
        if relation is spec.SpecifiedRelation.MIDDLE:
            middle = (furnisher.space.plan.inner_low + furnisher.space.plan.inner_high) / 2
            return self._place_at(piece, middle, 0.4)
        others = [self._placed.get(name, []) for name in item.object]
        if not all(others):
            return None
        if relation is spec.SpecifiedRelation.BETWEEN:
            ends = [other[-1 - number % len(other)] for other in others]
            middle = (ends[0].pose.translation + ends[1].pose.translation)[:2] / 2
            return self._place_at(piece, middle, 0.25) if ends[0] is not ends[1] else None
        targets = [others[0][(number + i) % len(others[0])] for i in range(len(others[0]))]
        if relation in _CARRIED:
            return self._place_on_carrier(piece, targets, RelationType(relation.value))
        for target in targets:
            if target.carrier is not None:
                below = target.relation or RelationType.ON
                found = self._place_on_carrier(piece, [target.carrier], below)
            else:
                found = self._place_next_to(piece, target, _BESIDE[relation], number)
            if found:
                return found
        return None

    def _place_on_carrier(
        self, piece: Piece, carriers: Sequence[PlacedPiece], relation: RelationType
    ) -> PlacedPiece | None:
        for carrier in carriers:
            for place, support in enumerate(carrier.piece.supports):
                if support.relation is relation and (
                    found := self._furnisher.put(carrier, piece, place)
                ):
                    return found
        return None

    def _place_at(self, piece: Piece, middle: np.ndarray, spread_m: float) -> PlacedPiece | None:
        rng = self._style.rng
        for _ in range(40):
            x, y = middle + rng.uniform(-spread_m, spread_m, 2)
            pose = Pose.from_yaw(float(rng.integers(4)) * np.pi / 2, (float(x), float(y), 0.0))
            if found := self._furnisher.at(piece, pose):
                return found
        return None

    def _place_next_to(
        self, piece: Piece, target: PlacedPiece, gap_m: tuple[float, float], number: int
    ) -> PlacedPiece | None:
        """Stand a piece at one of the four sides of another, looking at it, the next one first."""
        rng, (width, depth, _) = self._style.rng, target.piece.size
        for attempt in range(48):
            # Long sides come first: backs are mostly at walls, and fronts free.
            side = (2 * number + number // 2 + attempt) % 4 if number else attempt % 4
            along, across = (width, depth) if side % 2 == 0 else (depth, width)
            away = across / 2 + float(rng.uniform(*gap_m)) + piece.size[1] / 2
            aside = float(rng.uniform(-0.5, 0.5)) * max(along, piece.size[0])
            turn = side * np.pi / 2
            offset = Pose.from_yaw(turn) @ Pose.from_yaw(np.pi, (aside, -away, 0.0))
            height = Pose.from_yaw(0.0, (0.0, 0.0, -float(target.pose.translation[2])))
            if found := self._furnisher.at(piece, height @ target.pose @ offset):
                return found
        return None

    def _place_overhead(self, piece: Piece, number: int, count: int) -> PlacedPiece:
        plan = self._furnisher.space.plan
        share = (number + 0.5) / count
        x = plan.inner_low[0] + share * (plan.inner_high[0] - plan.inner_low[0])
        return self._furnisher.ceiling(piece, float(x), float((plan.low[1] + plan.high[1]) / 2))

    def _place_anywhere(self, piece: Piece, number: int, count: int) -> PlacedPiece | None:
        """Put a piece where such pieces are: hung, at a wall, in the room, or on another one."""
        name, furnisher = piece.class_name, self._furnisher
        if name == 'ceiling lamp':
            return self._place_overhead(piece, number, count)
        row = get_piece_row(name)
        if 'hangs_at_m' in row:
            return furnisher.hang(piece, row['hangs_at_m'])
        large = piece.size[0] * piece.size[1] >= _LARGE_M2 or piece.size[2] > 0.5
        if not large and 'stands_free' not in row:
            carriers = [item for items in self._placed.values() for item in items]
            if found := self._place_on_carrier(piece, carriers, RelationType.ON):
                return found
        free = furnisher.free(piece, (0.3, 0.3)) if 'stands_free' in row else None
        return free or furnisher.wall(piece, 0.4)


def _dye_piece(piece: Piece, color: str) -> Piece:
    """Return a piece with its largest part in another colour, with the pattern that it had."""
    main = max(piece.meshes, key=lambda mesh: float(np.ptp(mesh.vertices, axis=0).prod()))
    dye = Material(COLORS[color], main.material.texture)
    meshes = tuple(replace(mesh, material=dye) if mesh is main else mesh for mesh in piece.meshes)
    return replace(piece, meshes=meshes, color=color)
