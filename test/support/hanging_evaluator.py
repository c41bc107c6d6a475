"""The evaluator's process with a suite that never ends: patient, or deaf to cancellations."""

import sys
import time

from osmabench_ros.nodes.evaluator_node import EvaluatorNode
from osmabench_ros.ros.node.node_process import run_node
from osmabench_ros.runs import evaluation

KIND = sys.argv[1]


class HangingSuite:
    name = 'hanging'

    def evaluate(self, context):
        (context.output_directory / 'begun.txt').write_text(KIND)
        while True:
            time.sleep(0.01)
            if KIND == 'patient':
                context.progress('thinking', 0.5)


evaluation.make_suite = lambda _name, _options=None: HangingSuite()
raise SystemExit(run_node(EvaluatorNode, sys.argv[2:]))
