"""The suite of Space3D-Bench: answers by rule from the recorded map."""

from osmabench_ros.suites.question_suite import ExactQuestionsSuite
from osmabench_ros.vqa.exact import measurement, relations, robot_tasks
from osmabench_ros.vqa.exact.generation import QuestionSet
from osmabench_ros.vqa.kinds import QueryKind
from osmabench_ros.vqa.questions import SpatialCategory

# How far a straight distance may be off.
STRAIGHT_TOLERANCE_M = 0.2

# Kinds that OSMa-Bench has in categories of other names.
_KINDS = {
    SpatialCategory.LOCATION: (QueryKind.CENTER,),
    SpatialCategory.MEASUREMENT: (QueryKind.DISTANCE, QueryKind.HEIGHT, QueryKind.COUNT),
    SpatialCategory.RELATION: (
        QueryKind.RELATED,
        QueryKind.RELATED_TO,
        QueryKind.SUPPORT_OF,
        QueryKind.CONTAINER_OF,
    ),
    SpatialCategory.PATTERN: (QueryKind.MORE_OF,),
    SpatialCategory.PREDICTION: (QueryKind.PASSABLE, QueryKind.REACHABLE, QueryKind.CLEARANCE),
}

SPACE3D = QuestionSet(
    'space3d',
    'space3d/2',
    tuple(category.value for category in SpatialCategory),
    (
        measurement.places,
        measurement.rooms,
        measurement.counts,
        measurement.lengths,
        relations.spatial,
        relations.functional,
        measurement.ways,
        measurement.patterns,
        measurement.numbers,
        measurement.fits,
        robot_tasks.reachability,
    ),
    {kind: category for category, kinds in _KINDS.items() for kind in kinds},
    {QueryKind.DISTANCE: STRAIGHT_TOLERANCE_M},
)


class Space3dSuite(ExactQuestionsSuite):
    """Accuracy of the answers a recorded map gives to the six kinds of Space3D-Bench.

    Ways are looked for on the map's own points.
    """

    name = SPACE3D.suite
    asked = SPACE3D
