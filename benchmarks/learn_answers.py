"""Learn how exact questions are answered in apartments that no run uses.

    rm osmabench_ros/vqa/answering/answers_of_other_scenes.json
    python benchmarks/learn_answers.py osmabench_ros/vqa/answering/answers_of_other_scenes.json

The floor "learned text" of question accuracy rests on this table. Make it again after a change of
the questions or the apartment.
"""

import json
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from osmabench_ros.base.files import write_text
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.vqa.answering.baselines import gaps_of
from osmabench_ros.vqa.exact.generation import generate_questions
from osmabench_ros.vqa.exact.view import SceneView
from osmabench_ros.vqa.questions import AnswerType, Question
from osmabench_ros.vqa.wording import parsed

# Seeds from 1000 on are for learning; runs use lower ones.
SEEDS = range(1000, 1032)

# Two numbers with a smaller difference of their logarithms pass for one answer.
_STEP = 0.2


def ask_about_apartment(seed: int) -> Iterator[Question]:
    """Yield the exact questions about all objects of an apartment."""
    scene = load_scene('apartment', seed=seed)
    graph = build_ground_truth_graph(scene)
    yield from generate_questions(
        SceneView(graph, list(graph.by_id), label_set=scene.label_set), scene=scene.name, seed=seed
    )


def collect_answers(questions: Iterable[Question]) -> dict[str, dict[str, list[Any]]]:
    """Return the right answers by kind and words; coordinates differ between scenes."""
    table: dict[str, dict[str, list[Any]]] = {}
    for question in questions:
        query, answer = parsed(question.text), question.answer
        if query is not None and not isinstance(answer, tuple):
            if question.answer_type is AnswerType.NUMBER and isinstance(answer, float):
                answer = _round_number(answer)
            table.setdefault(query.kind.value, {}).setdefault(gaps_of(query), []).append(answer)
    return table


def _round_number(answer: float) -> float:
    return round(math.exp(_STEP * round(math.log(answer) / _STEP)), 2) if answer > 0 else answer


if __name__ == '__main__':
    table = collect_answers(item for seed in SEEDS for item in ask_about_apartment(seed))
    lines = (f'{json.dumps(kind)}: {json.dumps(table[kind], sort_keys=True)}' for kind in table)
    write_text(Path(sys.argv[1]), '{\n' + ',\n'.join(sorted(lines)) + '\n}\n')
