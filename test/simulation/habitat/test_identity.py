import numpy as np
import pytest
from support.world.scenes import LABELS, box_object

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED
from osmabench_ros.simulation.habitat.simulator import Identities


def named(instance_id, name, label):
    item = box_object(instance_id, label, (0, 0, 0), (1, 1, 1))
    return SceneObject(instance_id, name, item.class_id, item.meshes, item.pose)


def scene_of(*objects):
    return Scene('house', 'kitchen', LABELS, objects)


def rigid(object_id, handle):
    return {'ids': [object_id], 'handle': handle, 'semantic_id': 0, 'position': [0, 0, 0]}


def inventory(objects=(), articulated=(), annotations=(), stage=False):
    return {
        'objects': list(objects),
        'articulated': list(articulated),
        'annotations': list(annotations),
        'stage': stage,
    }


def translated(identities, pixels, surface=True):
    pixels = np.array(pixels, np.uint32)
    instance, semantic = identities.translate(pixels, np.broadcast_to(surface, pixels.shape))
    assert instance.dtype == np.int32
    assert semantic.dtype == np.uint16
    return instance.tolist(), semantic.tolist()


def test_objects_are_matched_in_order_and_pixels_without_any_are_unlabelled():
    scene = scene_of(named(5, 'cup.1', 'box'), named(9, 'cup.2', 'ball'))
    found = inventory([rigid(3, 'cup_:0000'), rigid(4, 'cup_:0001')])
    instance, semantic = translated(Identities(scene, found), [[3, 4, 0, 77]])
    assert instance == [[5, 9, NO_INSTANCE, NO_INSTANCE]]
    assert semantic == [[LABELS.id_of('box'), LABELS.id_of('ball'), UNLABELLED, UNLABELLED]]


def test_the_stage_is_what_is_left_where_there_is_a_surface():
    scene = scene_of(named(1, 'stage', 'wall'), named(2, 'cup.1', 'box'))
    identities = Identities(scene, inventory([rigid(1, 'cup_:0000')], stage=True))
    instance, semantic = translated(identities, [0, 0, 1], [True, False, True])
    assert instance == [1, NO_INSTANCE, 2]
    assert semantic == [LABELS.id_of('wall'), UNLABELLED, LABELS.id_of('box')]


def test_links_of_an_articulated_object_are_one_instance_that_cannot_be_moved():
    scene = scene_of(named(1, 'cup.1', 'box'), named(2, 'fridge.1', 'ball'))
    fridge = {'ids': [7, 8, 9], 'handle': 'fridge_:0000', 'semantic_id': 0, 'position': [0, 0, 0]}
    identities = Identities(scene, inventory([rigid(1, 'cup_:0000')], [fridge]))
    assert translated(identities, [1, 7, 8, 9])[0] == [1, 2, 2, 2]
    assert identities.movable == {1: 1}


def test_annotated_pixels_hold_instance_ids():
    scene = scene_of(named(4, 'sofa', 'box'), named(6, 'lamp', 'ball'))
    found = inventory(annotations=[{'id': i, 'category': 'x'} for i in range(8)], stage=True)
    identities = Identities(scene, found)
    assert translated(identities, [4, 6, 5, 0])[0] == [4, 6, NO_INSTANCE, NO_INSTANCE]


def test_what_no_annotation_claims_is_one_object():
    scene = scene_of(named(4, 'sofa.4', 'box'), named(9, 'unannotated', 'ball'))
    found = inventory(annotations=[{'id': i, 'category': 'x'} for i in (0, 4, 5)], stage=True)
    instance, _ = translated(Identities(scene, found), [4, 5, 70, 0], [True, True, True, False])
    assert instance == [4, 9, 9, NO_INSTANCE]


@pytest.mark.parametrize(
    ('found', 'message'),
    [
        (inventory([rigid(1, 'mug_:0000')]), '"cup.1" is "mug_:0000" in Habitat-Sim'),
        (inventory([]), 'has 1 objects, Habitat-Sim loaded 0'),
        (inventory(annotations=[{'id': 2, 'category': 'x'}]), 'instance id 1, which the semantic'),
    ],
)
def test_another_scene_is_refused(found, message):
    with pytest.raises(SimulationError, match=f'house/kitchen.*{message}'):
        Identities(scene_of(named(1, 'cup.1', 'box')), found)
