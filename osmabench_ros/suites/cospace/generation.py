"""Questions about the views around places of a path, for all seven tasks, with their images."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, product

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.scene_graph import SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.simulation.simulator import Observation
from osmabench_ros.suites.cospace import answering
from osmabench_ros.suites.cospace.answering import NUMBERED, PLANNING, Order, Task
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.answering.ways import RADIUS_M, FloorPlans, FloorWays
from osmabench_ros.vqa.evaluation import UNSEEABLE
from osmabench_ros.vqa.exact.generation import RADII_M, ways_on
from osmabench_ros.vqa.exact.view import SceneView, label_of, shuffled
from osmabench_ros.vqa.questions import AnswerType, Question, make_question, question_id

SUITE = 'cospace'
GENERATOR = 'cospace/1'
DEFAULT_PLACES = 8
PER_TASK = 2
"""Items of a task at a place, at most."""

OPTIONS = 4
IMAGES = 'cospace/{}_{}.png'
"""Image of a place, turned clockwise by so many degrees; next to the file of questions."""

_STEP_DEG = 30
_QUARTERS = (0, 90, 180, 270)
_LEAST_SHARE = 0.0005
"""Of the pixels of an image, which a visible object has at least."""

_LEAST_VIOLATION_RAD = math.radians(15.0)
"""The images must fit every other turning angle or odd image worse than this."""

_ODD_DEG = (150, 300)
"""The image that does not belong is turned by this much, all others by 90 degrees at most."""

_UNDER_M = RADIUS_M * np.array([(0, 0, 0), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)])
_GAP_M = 0.3
"""Largest gap in the floor that the path saw; its sample is sparser than what maps hold."""

_BELOW_M = 0.02

Render = Callable[[Pose], Observation]


@dataclass(frozen=True, eq=False)
class _Item:
    """A question before its options are put in order; `images` are the turns of its images."""

    asked: answering.Asked
    answer: str | int
    wrong: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()
    images: tuple[int, ...] = _QUARTERS


def panorama_questions(
    truth: GroundTruth,
    render: Render,
    *,
    scene_key: str,
    seed: int,
    places: int = DEFAULT_PLACES,
) -> tuple[list[Question], dict[str, NDArray[np.uint8]]]:
    """Generate questions about the views from places on a path, with their images by name; seeded.

    `render` returns the images of an optical pose, `HFOV_RAD` wide, with instances; the places are
    spread evenly along the path. The category is a `Task`, the provenance has `item`, equal for
    all orders of the images, `order`, and of rotation tasks `views`, the objects in the images, in
    words. Exactly one option is right, each letter as often as the others of a task. Each question
    has the same answer for whole objects and for their visible parts; of counts and ways the
    points of the ground truth give it too.
    """
    known = _Truths(truth)
    questions: dict[str, Question] = {}
    images: dict[str, NDArray[np.uint8]] = {}
    letters: Counter[Task] = Counter()
    chosen = np.linspace(0, len(truth.camera_poses) - 1, places + 2).round().astype(int)[1:-1]
    for number, index in enumerate(dict.fromkeys(chosen.tolist())):
        rng = np.random.default_rng([seed, 17, number])
        x, y, z = (round(value, 2) for value in truth.camera_poses[index].translation.tolist())
        place = answering.Place((x, y, z), float(rng.integers(360)))
        shots = {
            turn: render(place.camera(math.radians(turn))) for turn in range(0, 360, _STEP_DEG)
        }
        for item in _Views(known, place, shots, rng).items():
            letter = letters[item.asked.task]
            letters[item.asked.task] += 1
            for made in _make_questions(item, letter, number, rng, scene_key, seed):
                questions.setdefault(made.id, made)
            images |= {IMAGES.format(number, turn): shots[turn].color for turn in item.images}
    return list(questions.values()), images


def _make_questions(
    item: _Item, letter: int, number: int, rng: np.random.Generator, scene_key: str, seed: int
) -> Iterator[Question]:
    """Yield the questions of an item, one for each order of its images."""
    task, options = item.asked.task, shuffled(rng, item.wrong)
    if options:
        options.insert(letter % (len(options) + 1), str(item.answer))
    clockwise = answering.put_in_words(item.asked, Order.CLOCKWISE)
    said = {
        'generator': GENERATOR,
        'seed': str(seed),
        'item': question_id(SUITE, scene_key, clockwise + str(item.images)),
    }
    views = {'views': answering.list_views(item.asked.shown)} if item.asked.shown else {}
    for order, turns in _list_orders(item, rng):
        images = tuple(IMAGES.format(number, turn) for turn in turns)
        text = answering.put_in_words(item.asked, order)
        yield make_question(
            SUITE,
            scene_key,
            text,
            AnswerType.INTEGER if task in NUMBERED else AnswerType.CHOICE,
            item.answer,
            key=f'{text}\n{images}',
            category=task.value,
            nodes=item.nodes,
            provenance={**said, 'order': order.value, **views},
            options=tuple(options),
            images=images,
        )


def _list_orders(item: _Item, rng: np.random.Generator) -> Iterator[tuple[Order, Sequence[int]]]:
    """Yield the orders of an item, three, of rotation one; of planning all begin ahead."""
    yield Order.CLOCKWISE, item.images
    if item.images != _QUARTERS:
        return
    first, *rest = item.images
    mixed = [(1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1)]
    one, other = ((first, *(rest[i] for i in order)) for order in shuffled(rng, mixed)[:2])
    yield Order.SHUFFLED, one
    if item.asked.task in PLANNING:
        yield Order.SHUFFLED, other
    else:
        yield Order.TURNED, (*rest, first)


def whole_surface(truth: GroundTruth) -> NDArray[np.float32]:
    """Return all surface of a scene except below everything that the path saw.

    The underside of the lowest floor would pass for a floor, and no map has it.
    """
    seen, unseen = truth.surface.points, truth.unseen.points
    lowest = seen[:, 2].min(initial=np.inf) - _BELOW_M
    return np.concatenate([seen, unseen[unseen[:, 2] >= lowest]])


class _Truths:
    """The ground truth as questions about views need it.

    `readers` answer from perfect maps: with all surface, and with only the visible surface.
    """

    def __init__(self, truth: GroundTruth) -> None:
        from scipy.spatial import cKDTree

        self.view = SceneView.of_path(truth)
        # A robot a little wider or narrower has to go the same way.
        self.ways = ways_on(truth.surface, truth.unseen)[: len(RADII_M)]
        self._seen_points = cKDTree(truth.surface.points)
        visible = [g.drop_attributes(UNSEEABLE) for g in (truth.visible_graph,) if g]
        self._graphs = (truth.evaluated_graph, truth.graph, *visible)
        whole = whole_surface(truth)
        ways = FloorWays(FloorPlans(whole))
        vocabulary = tuple(truth.label_set.by_name)
        self.readers = [
            answering.ViewReader(
                GraphReader(graph, vocabulary, ids=truth.seen_instances), points, ways
            )
            for graph in self._graphs
            for points in (whole, truth.surface.points)
        ]

    def list_boxes(self, key: int) -> list[AxisAlignedBox]:
        """Return the boxes of an object: in question, whole, and of its visible part."""
        nodes = [graph.by_id.get(key) for graph in self._graphs]
        return [node.box for node in nodes if node is not None and node.box is not None]

    def is_seen_floor(self, line_m: NDArray[np.float64]) -> bool:
        """Return whether a robot on a way has floor under it that the path saw."""
        on_way = np.concatenate([np.linspace(a, b, 40) for a, b in pairwise(line_m)])
        distance, _ = self._seen_points.query((on_way[:, None] + _UNDER_M).reshape(-1, 3))
        return bool((distance <= _GAP_M).all())


class _Views:
    """The questions about one place."""

    def __init__(
        self,
        known: _Truths,
        place: answering.Place,
        shots: Mapping[int, Observation],
        rng: np.random.Generator,
    ) -> None:
        self._known = known
        self._place = place
        self._rng = rng
        self._view = known.view
        self._pixels = {turn: _count_pixels(shot.instance) for turn, shot in shots.items()}
        self._whole = {turn: _list_whole(shot.instance) for turn, shot in shots.items()}
        self._least = _LEAST_SHARE * shots[0].instance.size
        named = [x for x in self._view.named_boxed if self._count_most(x) >= self._least]
        self._seen = shuffled(rng, named)

    def _count_most(self, node: SceneNode) -> int:
        """Return the most pixels that an object has in one of the four images."""
        return max(self._pixels[turn].get(node.id, 0) for turn in _QUARTERS)

    def items(self) -> Iterator[_Item]:
        """Yield the items of all tasks, not more than PER_TASK each."""
        for task, ask in _ASKED.items():
            certain = (item for item in ask(self, task) if self._is_certain(item))
            yield from islice(certain, PER_TASK)

    def _is_certain(self, item: _Item) -> bool:
        """Return whether every perfect map answers as the item does."""
        options = (str(item.answer), *item.wrong) if item.wrong else ()
        return all(
            reader.answer(item.asked, options) == item.answer for reader in self._known.readers
        )

    def _find_sector(self, node: SceneNode) -> int | None:
        """Return the sector of an object, None if its boxes do not agree."""
        found = {self._place.sector(box) for box in self._known.list_boxes(node.id)}
        return found.pop() if len(found) == 1 else None

    def ask_where(self, task: Task) -> Iterator[_Item]:
        """Yield items about seen objects, with one of the answers of the task."""
        answers = answering.TASKS[task].answers
        for node in self._seen:
            if task is Task.DECISION:
                right = self._find_decision(node)
            else:
                sector = self._find_sector(node)
                right = '' if sector is None else answers[sector]
            if right:
                wrong = shuffled(self._rng, [name for name in answers if name != right])
                asked = answering.Asked(task, self._place, self._view.name(node))
                yield _Item(asked, right, tuple(wrong[: OPTIONS - 1]), (node.id,))

    def _find_decision(self, node: SceneNode) -> str:
        """Return the decision on which all ways to all boxes of an object agree, '' for none."""
        right = ''
        for ways, box in product(self._known.ways, self._known.list_boxes(node.id)):
            line = ways.line_m(self._place.eye_m, box.center)
            if line is None or not self._known.is_seen_floor(line):
                return ''
            said = answering.Way.along(self._place, line).decision
            right = right or said
            if not said or said != right:
                return ''
        return right

    def ask_objects(self, task: Task) -> Iterator[_Item]:
        """Yield items about sectors with an object in them, and others clearly outside."""
        for sector in shuffled(self._rng, range(answering.SECTORS)):
            inside = [node for node in self._seen if self._find_sector(node) == sector]
            outside = [
                self._view.name(node)
                for node in self._seen
                if all(
                    self._place.is_outside(box, sector) for box in self._known.list_boxes(node.id)
                )
            ]
            if inside and len(outside) >= OPTIONS - 1:
                asked = answering.Asked(task, self._place, answering.COMPASS[sector])
                wrong = tuple(outside[: OPTIONS - 1])
                yield _Item(asked, self._view.name(inside[0]), wrong, (inside[0].id,))

    def ask_counts(self, task: Task) -> Iterator[_Item]:
        """Yield items about classes, beginning with the one of most objects."""
        view = self._view
        labels = [label for label in view.by_label if not view.has_rival(label)]
        several = sorted(shuffled(self._rng, labels), key=lambda label: -len(view.by_label[label]))
        for label in several:
            nodes = view.by_label[label]
            every = [node for node in view.wide.things if label_of(node) == label]
            shown = [self._count_most(node) for node in every]
            # An object that is hardly seen, some would count and some would not.
            if len(nodes) < len(every) or any(0 < pixels < self._least for pixels in shown):
                continue
            count = sum(pixels > 0 for pixels in shown)
            if count:
                seen = tuple(n.id for n in nodes if self._count_most(n) >= self._least)
                yield _Item(answering.Asked(task, self._place, label), count, (), seen)

    def ask_angles(self, task: Task) -> Iterator[_Item]:
        """Yield items about images that are turned by equal angles."""
        for step in shuffled(self._rng, answering.STEPS_DEG):
            turns = tuple(step * number for number in range(4))
            if asked := self._ask_rotation(task, turns, (step, 0)):
                right = answering.STEPS_DEG.index(step)
                wrong = (answering.ANGLES[1 - right],)
                yield _Item(asked, answering.ANGLES[right], wrong, images=turns)

    def ask_odd_ones(self, task: Task) -> Iterator[_Item]:
        """Yield items about an image that was put into such a sequence."""
        turns = [_STEP_DEG * i for i in range(4)]
        low, high = (limit // _STEP_DEG for limit in _ODD_DEG)
        for odd in shuffled(self._rng, range(1, 6)):
            other = _STEP_DEG * int(self._rng.integers(low, high))
            shown = (*turns[: odd - 1], other, *turns[odd - 1 :])
            if asked := self._ask_rotation(task, shown, (_STEP_DEG, odd)):
                yield _Item(asked, odd, images=shown)

    def _ask_rotation(
        self, task: Task, turns: Sequence[int], key: tuple[int, int]
    ) -> answering.Asked | None:
        """Return the parts of a question if images fit a step and odd image, and no other by far.

        The objects that are shown are wholly within an image, from left to right.
        """
        names = self._view.names
        shown = tuple(
            tuple(
                names[node]
                for node in self._whole[turn]
                if node in names and self._pixels[turn][node] >= self._least
            )
            for turn in turns
        )
        asked = answering.Asked(task, self._place, shown=shown)
        for reader in self._known.readers:
            found = reader.find_violations(asked)
            if found.pop(key) > 0 or min(found.values()) < _LEAST_VIOLATION_RAD:
                return None
        return asked


_ASKED: Mapping[Task, Callable[[_Views, Task], Iterator[_Item]]] = {
    Task.DIRECTION: _Views.ask_where,
    Task.OBJECT: _Views.ask_objects,
    Task.COUNT: _Views.ask_counts,
    Task.ANGLE: _Views.ask_angles,
    Task.DIFFERENCE: _Views.ask_odd_ones,
    Task.PLACE: _Views.ask_where,
    Task.DECISION: _Views.ask_where,
}


def _count_pixels(instances: NDArray[np.int32]) -> dict[int, int]:
    """Return how many pixels each instance has."""
    ids, counts = np.unique(instances, return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def _list_whole(instances: NDArray[np.int32]) -> list[int]:
    """Return the instances that touch neither side of an image, from left to right."""
    cut = {0, *instances[:, 0].tolist(), *instances[:, -1].tolist()}
    columns = np.broadcast_to(np.arange(instances.shape[1]), instances.shape).ravel()
    ids, inverse, counts = np.unique(instances, return_inverse=True, return_counts=True)
    middles = np.bincount(inverse.ravel(), weights=columns) / counts
    return [key for key in ids[np.argsort(middles)].tolist() if key not in cut]
