"""Proves generated questions a second time, from the meshes of the scene and not from its graph.

python benchmarks/proved_questions.py [--seeds 10] [--count 60] [--suites exact space3d ...]

Apartments are seen from random places, and what is asked about them is answered again by
`mesh_answers`; for Hypo3D the told change is made to the meshes first. Questions about views
(CoSpace) and referring expressions are proved by `view_proofs`, turning angles from the images
alone. PromptGT is asked of rooms by random specifications, whose meshes answer. Exit code 1 if an
answer disagrees by more than the tolerance of its question, or if fewer than 50 questions of a
suite and seed are proved. Kinds without a second computation, such as materials, are counted
apart.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator

import numpy as np
from mesh_answers import HEIGHT_M, PROOFS, RADIUS_M, Meshes, direction
from specified_scenes import specified_scenes

from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.changes import apply_changes
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Lighting, Scene
from osmabench_ros.sequences.ground_truth import GroundTruth, build_ground_truth
from osmabench_ros.simulation.simulator import make_simulator
from osmabench_ros.simulation.walkable_grid import WalkableGrid
from osmabench_ros.suites.cospace.answering import Order
from osmabench_ros.suites.cospace.generation import panorama_questions
from osmabench_ros.suites.grounding.expressions import grounding_questions
from osmabench_ros.suites.hypo3d.generation import Hypo3DRun, hypothetical_questions
from osmabench_ros.suites.space3d.suite import SPACE3D
from osmabench_ros.vqa.exact.generation import EXACT, questions_about
from osmabench_ros.vqa.exact.prompt_ground_truth import promptgt_questions
from osmabench_ros.vqa.questions import AnswerValue, Question
from osmabench_ros.vqa.wording import parsed

CAMERA = Intrinsics.from_hfov(160, 120, 1.5)
PLACES = 16
# Rooms of a seed that PromptGT is asked of.
ROOMS = 5

SUITES = ('exact', 'space3d', 'hypo3d', 'cospace', 'grounding', 'promptgt')


def seen_truth(scene: Scene, seed: int) -> GroundTruth:
    """Return the ground truth of a scene that is seen from random places, all around."""
    grid = WalkableGrid.of_scene(scene, radius_m=RADIUS_M, height_m=HEIGHT_M)
    places = grid.draw_points(PLACES, np.random.default_rng(seed))
    poses = [
        Pose.from_yaw(yaw, (x, y, z + 1.2)) @ OPTICAL_IN_LINK
        for x, y, z in places.tolist()
        for yaw in np.arange(4) * np.pi / 2
    ]
    return build_ground_truth(scene, poses, CAMERA, seed=seed)


def asked_of(
    suite: str, scene: Scene, truth: GroundTruth, seed: int, count: int
) -> Iterator[tuple[Question, Meshes]]:
    """Yield the questions of a suite, each with the meshes that answer it."""
    seen = frozenset(truth.seen_instances)
    now = Meshes(scene, seen)
    if suite == 'promptgt':
        yield from _specified(seed)
        return
    if suite != 'hypo3d':
        kinds = EXACT if suite == 'exact' else SPACE3D
        for item in questions_about(truth, scene=scene.name, seed=seed, count=count, asked=kinds):
            yield item, now
        return
    questions, changes = hypothetical_questions(scene, truth, scene_key=scene.name, seed=seed)
    after = {}
    for item in questions:
        number = int(item.provenance['number'])
        if item.provenance['run'] == Hypo3DRun.TOLD.value and item.context_change not in after:
            changed = apply_changes(scene, (changes[number],))
            new = changed.by_instance.keys() - scene.by_instance.keys()
            after[item.context_change] = Meshes(changed, seen | new)
    for item in questions:
        yield item, after.get(item.context_change, now)


def _specified(seed: int) -> Iterator[tuple[Question, Meshes]]:
    for room in specified_scenes(seed, ROOMS):
        assert room.specification is not None
        meshes = Meshes(room, frozenset(room.by_instance))
        for item in promptgt_questions(room.specification, scene=room.name, seed=seed):
            yield item, meshes


def answer(question: Question, meshes: Meshes) -> tuple[str, AnswerValue | None]:
    """Return the kind of a question, and what meshes answer; None if they cannot."""
    found = direction(meshes, question.text)
    if found is not None:
        return 'direction', found
    query = parsed(question.text)
    assert query is not None, question.text
    proof = PROOFS.get(query.kind)
    named = ' '.join(filter(None, (query.kind.value, query.word)))
    return named, None if proof is None else proof(meshes, query)


def agrees(question: Question, found: AnswerValue) -> bool:
    """Return whether an answer is that of a question, within its tolerance."""
    right = question.answer
    if isinstance(right, tuple) and isinstance(found, tuple):
        off = np.subtract(np.array(right, float), np.array(found, float))
        return float(np.linalg.norm(off)) <= question.tolerance
    if isinstance(right, str) or isinstance(found, (str, tuple)):
        return right == found
    assert not isinstance(right, tuple)
    return abs(right - found) <= question.tolerance


def _judged(
    suite: str, scene: Scene, truth: GroundTruth, seed: int, count: int
) -> Iterator[tuple[str, str, AnswerValue, AnswerValue | None, bool]]:
    """Yield the kind of each question of a suite, what is asked, the answer and its proof."""
    if suite == 'cospace':
        yield from _views(scene, truth, seed)
    elif suite == 'grounding':
        from view_proofs import meant

        meshes = Meshes(scene, frozenset(truth.seen_instances))
        for question in grounding_questions(truth, scene=scene.name, seed=seed):
            told, target = question.provenance['expression'], int(question.provenance['target'])
            found = meant(meshes, told)
            yield question.category, told, target, found, found == target
    else:
        for question, meshes in asked_of(suite, scene, truth, seed, count):
            kind, found = answer(question, meshes)
            told = ' '.join(filter(None, (question.context_change, question.text)))
            same = found is None or agrees(question, found)
            yield kind, told, question.answer, found, same


def _views(
    scene: Scene, truth: GroundTruth, seed: int
) -> Iterator[tuple[str, str, AnswerValue, AnswerValue | None, bool]]:
    from view_proofs import CAMERA as WIDE
    from view_proofs import Views

    simulator = make_simulator('opengl', scene, WIDE, {})
    try:
        simulator.set_lighting(Lighting.unlit())
        asked, images = panorama_questions(
            truth, simulator.render, scene_key=scene.name, seed=seed
        )
    finally:
        simulator.close()
    views = Views(Meshes(scene, frozenset(truth.seen_instances)), images)
    for question in asked:
        # The order of the images makes no difference to where things are.
        if question.provenance['order'] == Order.CLOCKWISE.value:
            found = views.answer(question)
            same = found == question.answer
            yield question.category, question.text, question.answer, found, same


def main() -> int:
    """Print how many questions are proved, by suite and kind; return 1 if one is not as made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seeds', type=int, default=10)
    parser.add_argument('--first-seed', type=int, default=0)
    parser.add_argument('--count', type=int, default=60)
    parser.add_argument('--reference', default='apartment')
    parser.add_argument('--suites', nargs='+', choices=SUITES, default=SUITES)
    arguments = parser.parse_args()
    proved: Counter[tuple[str, str]] = Counter()
    unproved: Counter[tuple[str, str]] = Counter()
    wrong: Counter[str] = Counter()
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        scene = load_scene(arguments.reference, seed=seed)
        truth = seen_truth(scene, seed)
        for suite in arguments.suites:
            judged = _judged(suite, scene, truth, seed, arguments.count)
            for kind, told, right, found, same in judged:
                (unproved if found is None else proved)[suite, kind] += 1
                if not same:
                    wrong[suite] += 1
                    print(f'{suite}, seed {seed}: {told} {right}, by meshes {found}')
        print(f'seed {seed}: {_totals(proved)}; disagree: {dict(wrong) or 0}', flush=True)
    for title, found in (('proved', proved), ('without a second computation', unproved)):
        for (suite, kind), count in sorted(found.items()):
            print(f'{count:5} {title}: {suite}, {kind}')
    few = [suite for suite in arguments.suites if _totals(proved)[suite] < 50 * arguments.seeds]
    print(f'{_totals(proved)} proved, {wrong.total()} disagree; fewer than 50 a seed: {few}')
    return int(wrong.total() > 0 or bool(few))


def _totals(counted: Counter[tuple[str, str]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (suite, _), count in counted.items():
        found[suite] += count
    return found


if __name__ == '__main__':
    sys.exit(main())
