"""Questions about the views around places of a path, for all seven tasks, with their images."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.simulation.simulator import Observation
from osmabench_ros.suites.cospace import answering
from osmabench_ros.suites.cospace.answering import TASKS, Asked, Order, TaskRow
from osmabench_ros.suites.hypo3d.frame import NEAREST_M
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.evaluation import UNSEEABLE
from osmabench_ros.vqa.exact.generation import ways_on
from osmabench_ros.vqa.exact.view import SceneView, label_of, shuffled
from osmabench_ros.vqa.questions import AnswerType, Question, make_question, question_id

SUITE = 'cospace'
GENERATOR = 'cospace/2'
DEFAULT_PLACES = 8
# Items of a task at a place, at most.
PER_TASK = 2
OPTIONS = 4
# Image of a place, turned clockwise by so many degrees; next to the file of questions.
IMAGES = 'cospace/{}_{}.png'

_STEP_DEG = 30
_QUARTERS = (0, 90, 180, 270)
# Of the pixels of an image, which a visible object has at least.
_LEAST_SHARE = 0.0005
# The image that does not belong is turned by one of these, all others by 90 degrees at most.
_ODD_DEG = range(150, 300, _STEP_DEG)
_BELOW_M = 0.02

Render = Callable[[Pose], Observation]


@dataclass(frozen=True, eq=False)
class _Item:
    """A question as maps are asked it, its answer, and the turns of its images.

    Three of the other options become options of the question.
    """

    asked: Asked
    answer: answering.Said
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
    words. Exactly one option is right, each letter as often as the others of a task. Every map
    made of the ground truth gives the answer, clearly: with whole objects and with their visible
    parts, and ways of a robot that is a little wider or narrower.
    """
    view = SceneView.of_path(truth)
    readers = _make_readers(truth)
    questions: dict[str, Question] = {}
    images: dict[str, NDArray[np.uint8]] = {}
    letters: Counter[TaskRow] = Counter()
    chosen = np.linspace(0, len(truth.camera_poses) - 1, places + 2).round().astype(int)[1:-1]
    for number, index in enumerate(dict.fromkeys(chosen.tolist())):
        rng = np.random.default_rng([seed, 17, number])
        x, y, z = (round(value, 2) for value in truth.camera_poses[index].translation.tolist())
        place = answering.Place((x, y, z), float(rng.integers(360)))
        shots = {
            turn: render(place.camera(math.radians(turn))) for turn in range(0, 360, _STEP_DEG)
        }
        for item in _Views(view, readers, place, shots, rng).list_items():
            task = item.asked.task
            others = (name for name in item.asked.options if name != item.answer)
            options = shuffled(rng, others)[: OPTIONS - 1]
            if options:
                options.insert(letters[task] % (len(options) + 1), str(item.answer))
            letters[task] += 1
            clockwise = answering.put_in_words(item.asked, Order.CLOCKWISE) + str(item.images)
            said = {
                'generator': GENERATOR,
                'seed': str(seed),
                'item': question_id(SUITE, scene_key, clockwise),
            }
            if item.asked.shown:
                said['views'] = answering.list_views(item.asked.shown)
            for order, turns in _list_orders(item, rng):
                names = tuple(IMAGES.format(number, turn) for turn in turns)
                text = answering.put_in_words(item.asked, order)
                made = make_question(
                    SUITE,
                    scene_key,
                    text,
                    AnswerType.INTEGER if task.numbers else AnswerType.CHOICE,
                    item.answer,
                    key=f'{text}\n{names}',
                    category=task.name,
                    nodes=item.nodes,
                    provenance=said | {'order': order.value},
                    options=tuple(options),
                    images=names,
                )
                questions.setdefault(made.id, made)
            images |= {IMAGES.format(number, turn): shots[turn].color for turn in item.images}
    return list(questions.values()), images


def _list_orders(item: _Item, rng: np.random.Generator) -> Iterator[tuple[Order, Sequence[int]]]:
    """Yield the orders of an item, three, of rotation one; of planning all begin ahead."""
    yield Order.CLOCKWISE, item.images
    if item.images != _QUARTERS:
        return
    first, *rest = item.images
    one, other = shuffled(rng, list(permutations(rest))[1:])[:2]
    yield Order.SHUFFLED, (first, *one)
    if item.asked.task.part:
        yield Order.SHUFFLED, (first, *other)
    else:
        yield Order.TURNED, (*rest, first)


def whole_surface(truth: GroundTruth) -> NDArray[np.float32]:
    """Return all surface of a scene except below everything that the path saw.

    The underside of the lowest floor would pass for a floor, and no map has it.
    """
    seen, unseen = truth.surface.points, truth.unseen.points
    lowest = seen[:, 2].min(initial=np.inf) - _BELOW_M
    return np.concatenate([seen, unseen[unseen[:, 2] >= lowest]])


def _make_readers(truth: GroundTruth) -> list[answering.ViewReader]:
    """Return readers of perfect maps: with all objects or parts, and all surface or the visible.

    Each is asked by robots of all `ways_on` the surface.
    """
    visible = [g.drop_attributes(UNSEEABLE) for g in (truth.visible_graph,) if g]
    vocabulary, seen = tuple(truth.label_set.by_name), truth.seen_instances
    looks = answering.look_at(whole_surface(truth)), answering.look_at(truth.surface.points)
    every_way = ways_on(truth.surface, truth.unseen)
    return [
        answering.ViewReader(GraphReader(graph, vocabulary, ids=seen), looks[number % 2], ways)
        for graph in (truth.evaluated_graph, truth.graph, *visible)
        for number, ways in enumerate(every_way)
    ]


@dataclass(eq=False)
class _Views:
    """What may be asked about one place."""

    view: SceneView
    readers: Sequence[answering.ViewReader]
    place: answering.Place
    shots: Mapping[int, Observation]
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.least = _LEAST_SHARE * self.shots[0].instance.size
        self.columns = {
            turn: {
                key: np.nonzero(shot.instance == key)[1]
                for key in np.unique(shot.instance).tolist()
            }
            for turn, shot in self.shots.items()
        }
        named = self.view.named_boxed
        self.seen = shuffled(self.rng, (x for x in named if self.count_most(x.id) >= self.least))

    def count_most(self, key: int) -> int:
        """Return the most pixels that an object has in one of the four images."""
        return max(len(self.columns[turn].get(key, ())) for turn in _QUARTERS)

    def list_items(self) -> Iterator[_Item]:
        """Yield up to PER_TASK items of each task with an answer that all maps give clearly."""
        for task in TASKS.values():
            drawn = _ASKED[task.rate](self, task)
            yield from islice(filter(self.is_agreed, drawn), PER_TASK)

    def is_agreed(self, item: _Item) -> bool:
        """Return whether all maps give the answer of an item clearly."""
        return all(reader.answer_clearly(item.asked) == item.answer for reader in self.readers)

    def ask_where(self, task: TaskRow) -> Iterator[_Item]:
        """Yield items about seen objects, with all answers of the task."""
        for node in self.seen:
            if math.dist(node.known_box.center[:2], self.place.eye_m[:2]) >= NEAREST_M:
                asked = Asked(task, self.place, self.view.name(node), options=task.answers)
                if answer := self.readers[0].answer_clearly(asked):
                    yield _Item(asked, answer, (node.id,))

    def ask_objects(self, task: TaskRow) -> Iterator[_Item]:
        """Yield items about sectors, with an object that is in it and others that are not."""
        seen = {self.view.name(node): node for node in self.seen}
        for sector in shuffled(self.rng, answering.COMPASS):
            asked = Asked(task, self.place, sector, options=tuple(seen))
            rated = self.readers[0].rate_objects(asked)
            inside = [name for name in seen if rated[name] <= task.right_rad]
            outside = [name for name in seen if rated[name] >= task.wrong_rad]
            if inside and len(outside) >= OPTIONS - 1:
                options = (inside[0], *outside[: OPTIONS - 1])
                yield _Item(replace(asked, options=options), inside[0], (seen[inside[0]].id,))

    def ask_counts(self, task: TaskRow) -> Iterator[_Item]:
        """Yield items about classes, beginning with the one of most objects."""
        view = self.view
        labels = shuffled(self.rng, view.groups)
        for label in sorted(labels, key=lambda label: -len(view.by_label[label])):
            every = [node.id for node in view.wide.things if label_of(node) == label]
            shown = {key: pixels for key in every if (pixels := self.count_most(key))}
            # An object that is hardly seen, some would count and some would not.
            is_clear = all(pixels >= self.least for pixels in shown.values())
            if shown and is_clear and len(every) == len(view.by_label[label]):
                yield _Item(Asked(task, self.place, label), len(shown), tuple(shown))

    def ask_rotations(self, task: TaskRow) -> Iterator[_Item]:
        """Yield items about images that are turned by equal angles, or with another one put in."""
        answers: Sequence[answering.Said] = task.answers or range(1, task.numbers + 1)
        for answer in shuffled(self.rng, answers):
            step_deg = answering.STEPS_DEG.get(str(answer), _STEP_DEG)
            turns = [step_deg * number for number in range(4)]
            if isinstance(answer, int):
                turns.insert(answer - 1, int(self.rng.choice(_ODD_DEG)))
            shown = tuple(map(self.list_whole, turns))
            asked = Asked(task, self.place, shown=shown, options=task.answers)
            yield _Item(asked, answer, images=tuple(turns))

    def list_whole(self, turn: int) -> tuple[str, ...]:
        """Return the named objects that are wholly within an image, from left to right."""
        columns = self.columns[turn]
        last = self.shots[turn].instance.shape[1] - 1
        return tuple(
            self.view.names[key]
            for key in sorted(columns, key=lambda key: float(columns[key].mean()))
            if key in self.view.names and len(columns[key]) >= self.least
            if columns[key].min() > 0 and columns[key].max() < last
        )


_ASKED: Mapping[answering.Rate, Callable[[_Views, TaskRow], Iterator[_Item]]] = {
    answering.ViewReader.rate_directions: _Views.ask_where,
    answering.ViewReader.rate_objects: _Views.ask_objects,
    answering.ViewReader.rate_counts: _Views.ask_counts,
    answering.ViewReader.rate_rotations: _Views.ask_rotations,
    answering.ViewReader.rate_ways: _Views.ask_where,
}
