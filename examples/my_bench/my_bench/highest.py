# my_bench/my_bench/highest.py
from osmabench_ros.metrics.record import Mode
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.suites.question_suite import ExactQuestionsSuite
from osmabench_ros.vqa.answering.execution import SilentError, answer_from
from osmabench_ros.vqa.exact import measurement
from osmabench_ros.vqa.exact.generation import QuestionSet
from osmabench_ros.vqa.exact.view import label_of
from osmabench_ros.vqa.kinds import Kind
from osmabench_ros.vqa.published import Published, PublishedRow, make_line_reader
from osmabench_ros.vqa.questions import AnswerType, Category


def sort_by_top(index):
    nodes = [n for n in index.by_id.values() if n.kind is NodeKind.OBJECT and n.label and n.box]
    return sorted(nodes, key=lambda node: node.box.maximum[2])


def find_highest(graph, _query):
    found = sort_by_top(graph.index)
    if not found:
        raise SilentError('the map has no boxes')
    return answer_from(label_of(found[-1]), found[-1])


def draw_if_clear(view):
    """Yield the objects of each question: none, once, if the highest is clearly so."""
    tops_m = [node.box.maximum[2] for node in sort_by_top(view.wide)]
    if len(tops_m) > 1 and tops_m[-1] - tops_m[-2] >= 0.2:
        yield ()


HIGHEST = Kind(
    'which is highest', Category.COMPARISON, AnswerType.TEXT, find_highest, draw=draw_if_clear
)('Which object is the highest?', 'Which object has the highest top?')


class Row(PublishedRow):
    question: str
    right: str
    said: str


def compare(rows, mode):
    """Yield groups and outcomes: as published the answer is compared as it is, case and all."""
    for row in rows:
        pair = row.said, row.right
        if mode is Mode.STRICT:
            pair = tuple(text.strip().lower() for text in pair)
        yield {'kind': ('all', row.question.split()[0]), 'accuracy': pair[0] == pair[1]}


class Highest(ExactQuestionsSuite):
    """Accuracy of answers to which object is the highest, and how many there are of a kind."""

    name = 'highest'
    asked = QuestionSet(
        name, 'highest/1', ('Comparison', 'Measurement'), (measurement.counts,), kinds=(HIGHEST,)
    )
    published = Published(make_line_reader(Row), compare, groups=('kind',))
