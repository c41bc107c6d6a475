"""Questions about the views around places of a path, for all seven tasks, with their images."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.labels import NO_INSTANCE
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.simulation.simulator import Observation
from osmabench_ros.suites.cospace import answering
from osmabench_ros.suites.cospace.answering import TASKS, Asked, Order, Task
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
    """A question as maps are asked it, and its answer if it does not come from them.

    `images` are the turns of its images.
    """

    asked: Asked
    options: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()
    images: tuple[int, ...] = _QUARTERS
    answer: answering.Said | None = None


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
    letters: Counter[Task] = Counter()
    chosen = np.linspace(0, len(truth.camera_poses) - 1, places + 2).round().astype(int)[1:-1]
    for number, index in enumerate(dict.fromkeys(chosen.tolist())):
        rng = np.random.default_rng([seed, 17, number])
        x, y, z = (round(value, 2) for value in truth.camera_poses[index].translation.tolist())
        place = answering.Place((x, y, z), float(rng.integers(360)))
        shots = {
            turn: render(place.camera(math.radians(turn))) for turn in range(0, 360, _STEP_DEG)
        }
        for item, answer in _Views(view, readers, place, shots, rng).items():
            task = item.asked.task
            options = shuffled(rng, (name for name in item.options if name != answer))
            options = options[: OPTIONS - 1]
            if options:
                options.insert(letters[task] % (len(options) + 1), str(answer))
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
                    AnswerType.INTEGER if task in answering.NUMBERED else AnswerType.CHOICE,
                    answer,
                    key=f'{text}\n{names}',
                    category=task.value,
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
    if item.asked.task in answering.PLANNING:
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
    vocabulary = tuple(truth.label_set.by_name)
    looks = answering.look_at(whole_surface(truth)), answering.look_at(truth.surface.points)
    return [
        answering.ViewReader(
            GraphReader(graph, vocabulary, ids=truth.seen_instances), looks[number % 2], ways
        )
        for graph in (truth.evaluated_graph, truth.graph, *visible)
        for number, ways in enumerate(ways_on(truth.surface, truth.unseen))
    ]


class _Views:
    """What may be asked about one place."""

    def __init__(
        self,
        view: SceneView,
        readers: Sequence[answering.ViewReader],
        place: answering.Place,
        shots: Mapping[int, Observation],
        rng: np.random.Generator,
    ) -> None:
        self._view = view
        self._readers = readers
        self._place = place
        self._rng = rng
        self._shots = shots
        self._least = _LEAST_SHARE * shots[0].instance.size
        self._columns = {
            turn: {
                key: np.nonzero(shot.instance == key)[1]
                for key in np.unique(shot.instance).tolist()
                if key != NO_INSTANCE
            }
            for turn, shot in shots.items()
        }
        self._seen = shuffled(
            rng, (x for x in view.named_boxed if self._count_most(x.id) >= self._least)
        )

    def _count_most(self, key: int) -> int:
        """Return the most pixels that an object has in one of the four images."""
        return max(len(self._columns[turn].get(key, ())) for turn in _QUARTERS)

    def items(self) -> Iterator[tuple[_Item, answering.Said]]:
        """Yield up to PER_TASK items of each task, with the answer that all maps give clearly."""
        for task, ask in _ASKED.items():
            found = ((item, self._find_answer(item)) for item in ask(self, task))
            yield from islice(((x, said) for x, said in found if said is not None), PER_TASK)

    def _find_answer(self, item: _Item) -> answering.Said | None:
        """Return the answer that all maps give clearly, None without."""
        options = item.options
        answers = (reader.answer_clearly(item.asked, options) for reader in self._readers)
        first = next(answers)
        is_agreed = item.answer in (None, first) and all(answer == first for answer in answers)
        return first if is_agreed else None

    def ask_where(self, task: Task) -> Iterator[_Item]:
        """Yield items about seen objects, with all answers of the task."""
        for node in self._seen:
            if math.dist(node.known_box.center[:2], self._place.eye_m[:2]) >= NEAREST_M:
                asked = Asked(task, self._place, self._view.name(node))
                yield _Item(asked, TASKS[task].answers, (node.id,))

    def ask_objects(self, task: Task) -> Iterator[_Item]:
        """Yield items about sectors, with an object that is in it and others that are not."""
        seen = {self._view.name(node): node for node in self._seen}
        for sector in shuffled(self._rng, answering.COMPASS):
            asked = Asked(task, self._place, sector)
            rated = self._readers[0].rate_objects(asked, tuple(seen))
            inside = [name for name in seen if rated[name] <= TASKS[task].right_rad]
            outside = [name for name in seen if rated[name] >= TASKS[task].wrong_rad]
            if inside and len(outside) >= OPTIONS - 1:
                options = (inside[0], *outside[: OPTIONS - 1])
                yield _Item(asked, options, (seen[inside[0]].id,))

    def ask_counts(self, task: Task) -> Iterator[_Item]:
        """Yield items about classes, beginning with the one of most objects."""
        view = self._view
        labels = shuffled(self._rng, view.groups)
        for label in sorted(labels, key=lambda label: -len(view.by_label[label])):
            every = [node.id for node in view.wide.things if label_of(node) == label]
            shown = {key: pixels for key in every if (pixels := self._count_most(key))}
            # An object that is hardly seen, some would count and some would not.
            is_clear = all(pixels >= self._least for pixels in shown.values())
            if shown and is_clear and len(every) == len(view.by_label[label]):
                asked = Asked(task, self._place, label)
                yield _Item(asked, nodes=tuple(shown), answer=len(shown))

    def ask_rotations(self, task: Task) -> Iterator[_Item]:
        """Yield items about images that are turned by equal angles, or with another one put in."""
        drawn: list[tuple[answering.Said, list[int]]] = [
            (name, [step * number for number in range(4)])
            for name, step in answering.STEPS_DEG.items()
        ]
        if task is Task.DIFFERENCE:
            drawn = [(odd, [_STEP_DEG * number for number in range(4)]) for odd in range(1, 6)]
        for answer, turns in shuffled(self._rng, drawn):
            if isinstance(answer, int):
                turns.insert(answer - 1, int(self._rng.choice(_ODD_DEG)))
            asked = Asked(task, self._place, shown=tuple(map(self._list_whole, turns)))
            yield _Item(asked, TASKS[task].answers, (), tuple(turns), answer)

    def _list_whole(self, turn: int) -> tuple[str, ...]:
        """Return the named objects that are wholly within an image, from left to right."""
        columns = self._columns[turn]
        last = self._shots[turn].instance.shape[1] - 1
        return tuple(
            self._view.names[key]
            for key in sorted(columns, key=lambda key: float(columns[key].mean()))
            if key in self._view.names and len(columns[key]) >= self._least
            if columns[key].min() > 0 and columns[key].max() < last
        )


_ASKED: Mapping[Task, Callable[[_Views, Task], Iterator[_Item]]] = {
    Task.DIRECTION: _Views.ask_where,
    Task.OBJECT: _Views.ask_objects,
    Task.COUNT: _Views.ask_counts,
    Task.ANGLE: _Views.ask_rotations,
    Task.DIFFERENCE: _Views.ask_rotations,
    Task.PLACE: _Views.ask_where,
    Task.DECISION: _Views.ask_where,
}
