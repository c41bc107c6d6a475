"""What a faultless method maps beside what the truth calls seen must cost it nothing."""

import pytest
from support.world import box_room
from support.world.box_room import ROOM

from osmabench_ros.mappers.oracle import OracleMapper
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.suites.instances import InstancesSuite
from osmabench_ros.suites.scene_graph import SceneGraphSuite
from osmabench_ros.suites.suite import SuiteContext

CUP = next(number for number, box in enumerate(ROOM, start=1) if box.label == 'cup')


@pytest.fixture(scope='module')
def context():
    """The map of an oracle, and a truth that holds the cup for too small to be resolved."""
    frames = box_room.frames()
    mapper = OracleMapper(label_set=box_room.LABELS, seed=0, options={})
    for frame in frames:
        mapper.integrate(frame)
    cloud = box_room.visible_cloud(frames)
    is_cup = cloud.instances == CUP
    truth = box_room.ground_truth(
        frames, surface=cloud.select(~is_cup), unseen=cloud.select(is_cup)
    )
    return SuiteContext('boxes', mapper.semantic_map(final=True), truth, device='cpu')


def scores(suite, context):
    records = suite.evaluate(context)
    return {item.metric: item.value for item in records if not item.class_name}


def test_an_oracle_that_sees_more_than_the_truth_resolves_is_faultless(context):
    assert CUP in {node.id for node in context.semantic_map.graph.of_kind(NodeKind.OBJECT)}
    graph = scores(SceneGraphSuite(options={}), context)
    assert (graph['node_precision'], graph['node_recall'], graph['label_accuracy']) == (1, 1, 1)
    assert graph['unmatched_relations'] == 0
    masks = scores(InstancesSuite(options={}), context)
    assert (masks['map_coco'], masks['rq'], masks['class_agnostic_ap50_coco']) == (1, 1, 1)
    assert masks['count_error'] == 0
