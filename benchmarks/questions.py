"""Time of exact questions: 10,000 generated, answered and scored for a scene of 500 objects.

python benchmarks/questions.py [--questions 10000] [--objects 500] [--limit-s 20]

The ground-truth graph stands in for the map. Exit code 1 above the limit.
"""

import argparse
import sys
import time

import numpy as np

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.scene_graph import SceneEdge, SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.vqa.answering.baselines import ground_truth_map
from osmabench_ros.vqa.evaluation import QuestionedMap, answer_all, judge_all, scored
from osmabench_ros.vqa.exact.generation import generate_questions
from osmabench_ros.vqa.exact.view import SceneView
from osmabench_ros.vqa.knowledge import knowledge

COLORS = ('red', 'blue', 'green', 'yellow', 'black', 'white', 'brown', 'purple')
MATERIALS = ('wood', 'metal', 'glass', 'plastic', 'leather', 'stone')


def furnished_hall(objects: int, seed: int = 0) -> SceneGraph:
    """Return a graph of household things, a third of them on top of another."""
    rng = np.random.default_rng(seed)
    kinds = knowledge().household[: max(1, int(0.75 * len(knowledge().household)))]
    nodes: list[SceneNode] = []
    edges = []
    for node_id in range(1, objects + 1):
        low = np.array([*rng.uniform(0, 60, 2), 0.0])
        if node_id % 3 == 0:
            below = nodes[-1]
            assert below.box is not None
            low = np.array([*below.box.minimum[:2], below.box.maximum[2]])
            edges.append(SceneEdge(node_id, below.id, 'on'))
        attributes = {'color': str(rng.choice(COLORS)), 'material': str(rng.choice(MATERIALS))}
        box = AxisAlignedBox(low, low + rng.uniform(0.2, 1.8, 3))
        label = ScoredLabel(str(rng.choice(kinds)), 1.0)
        nodes.append(SceneNode(node_id, labels=(label,), attributes=attributes, box=box))
    return SceneGraph(tuple(nodes), tuple(edges))


def main() -> int:
    """Print the times of each step; return 1 if they exceed the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--questions', type=int, default=10_000)
    parser.add_argument('--objects', type=int, default=500)
    parser.add_argument('--limit-s', type=float, default=20.0)
    arguments = parser.parse_args()
    graph = furnished_hall(arguments.objects)
    ids = {node.id for node in graph.nodes}
    start, cpu = time.perf_counter(), time.process_time()
    view = SceneView(graph, ids)
    questions = generate_questions(view, scene='hall', seed=0, count=arguments.questions)
    generated = time.perf_counter()
    asked = QuestionedMap(ground_truth_map(graph, ids))
    answers = answer_all(asked.semantic_map, questions, asked.rules)
    records = scored(asked, questions, judge_all(questions, answers, asked.equality), suite='')
    done = time.perf_counter()
    accuracy = next(r.value for r in records if r.metric == 'accuracy')
    total_s = done - start
    print(f'{len(questions)} questions about {arguments.objects} objects')
    print(f'generated in {generated - start:.1f} s, answered, judged and scored with four')
    print(f'baselines in {done - generated:.1f} s: {total_s:.1f} s in all, of which the')
    print(f'processor was busy {time.process_time() - cpu:.1f} s; accuracy {accuracy}')
    return int(total_s > arguments.limit_s)


if __name__ == '__main__':
    sys.exit(main())
