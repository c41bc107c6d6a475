from dataclasses import replace

import numpy as np
import pytest
from support.benchmark_scripts import benchmark_script
from support.world import box_room

from osmabench_ros.base.configuration import config_path
from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.appearance import PROTOTYPES_FILE, AppearanceMapper, read_prototypes
from osmabench_ros.maps.storage import pack_map
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind

learning = benchmark_script('learn_prototypes')


def headlight(pose, depth, colors):
    """Shine from the camera: distant surfaces are dark."""
    shade = np.minimum(1.0, (1.2 / np.maximum(depth, 0.1)) ** 2)
    return (colors * shade[:, None]).astype(np.uint8)


def shifted(boxes):
    """Return another room of the same kind: furniture moved, colours a little different."""
    moved = {'table': (-0.7, 0.5, 0), 'cup': (-0.7, 0.4, 0), 'shelf': (-1.2, 0, 0)}
    return tuple(
        replace(
            box,
            low=tuple(np.add(box.low, moved.get(box.label, 0))),
            high=tuple(np.add(box.high, moved.get(box.label, 0))),
            color=tuple(int(value) for value in np.clip(np.add(box.color, 6), 0, 255)),
        )
        for box in boxes
    )


@pytest.fixture(scope='module')
def frames():
    return box_room.frames()


@pytest.fixture(scope='module')
def prototypes(tmp_path_factory):
    path = tmp_path_factory.mktemp('learnt') / 'prototypes.json'
    sample = learning.training_sample(box_room.frames(shifted(box_room.ROOM)), box_room.LABELS)
    learnt = learning.learn_prototypes(
        [sample], per_class=3, seed=0, provenance={'room': 'shifted'}
    )
    learning.write_prototypes(learnt, path)
    return path


def mapped(frames, prototypes, label_set=box_room.LABELS, **options):
    given = {'prototypes': str(prototypes), 'rooms': False, **options}
    return box_room.map_room(AppearanceMapper, frames, label_set=label_set, **given)


def accuracy(semantic_map, frames):
    return box_room.share_labelled(semantic_map.dense, box_room.visible_cloud(frames))


def test_it_knows_a_room_like_the_one_it_learnt_from(frames, prototypes):
    result = mapped(frames, prototypes)
    assert accuracy(result, frames) > 0.9
    found = {node.label for node in result.graph.of_kind(NodeKind.OBJECT)}
    assert {'table', 'sofa', 'shelf'} <= found


def test_ground_truth_plays_no_part(frames, prototypes):
    blind = [replace(frame, semantic=None, instance=None) for frame in frames[:4]]
    assert pack_map(mapped(blind, prototypes)) == pack_map(mapped(frames[:4], prototypes))
    assert not AppearanceMapper.uses_ground_truth


def test_it_suffers_from_light(frames, prototypes):
    lit = box_room.frames(light=headlight)
    assert accuracy(mapped(lit, prototypes), lit) < accuracy(mapped(frames, prototypes), frames)


def test_instances_of_the_points_are_the_nodes(frames, prototypes):
    result = mapped(frames, prototypes)
    ids = [node.id for node in result.graph.nodes]
    assert ids == list(range(1, len(ids) + 1))
    assert set(np.unique(result.dense.instances)) - {0} == set(ids)
    sizes = np.bincount(result.dense.instances)[1:]
    assert (np.diff(sizes) <= 0).all()
    for node in result.graph.nodes:
        own = result.dense.instances == node.id
        assert node.class_id in result.dense.labels[own]
        assert node.observations >= 1
    assert ((result.dense.scores > 0) & (result.dense.scores <= 1)).all()


def test_small_things_get_no_node(frames, prototypes):
    result = mapped(frames, prototypes)
    sizes = np.bincount(result.dense.instances)
    assert sizes[0] > 0
    assert len(sizes) - 1 == len(result.graph.nodes)
    assert sizes[1:].min() >= 8


def test_only_classes_of_the_label_set_are_named(frames, prototypes):
    fewer = LabelSet.from_names('fewer', ['sofa', 'lamp'], ['wall'])
    result = mapped(frames[:3], prototypes, fewer)
    assert {fewer.name_of(int(item)) for item in np.unique(result.dense.labels)} <= {
        'sofa',
        'wall',
    }


def test_a_label_set_without_a_known_class_is_refused(prototypes):
    with pytest.raises(ConfigError, match='none of the classes of label set "other"'):
        mapped([], prototypes, LabelSet.from_names('other', ['rocket']))


def test_prototypes_survive_a_file(prototypes, tmp_path):
    first = read_prototypes(prototypes)
    learning.write_prototypes(first, tmp_path / 'again.json')
    assert (tmp_path / 'again.json').read_bytes() == prototypes.read_bytes()
    assert first.provenance == {'room': 'shifted'}
    assert first.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (None, 'does not exist'),
        ('{', 'is not JSON'),
        ('{"format": "other", "features": []}', 'learn the prototypes again'),
        ('[]', 'not a file of prototypes'),
    ],
)
def test_a_bad_file_of_prototypes_is_named(tmp_path, text, message):
    path = tmp_path / 'bad.json'
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=rf'bad\.json.*{message}'):
        mapped([], path)


def test_the_prototypes_of_the_package_come_from_apartments_that_no_run_uses():
    path = config_path(PROTOTYPES_FILE)
    learnt = read_prototypes(path)
    assert path.stat().st_size < 100_000
    assert min(learnt.provenance['seeds']) >= learning.FIRST_SEED
    assert {'wall', 'floor', 'ceiling', 'sofa', 'table'} <= {
        name.split()[-1] for name in learnt.names
    }


@pytest.mark.parametrize('seeds', [[], [learning.FIRST_SEED, 5]])
def test_seeds_of_runs_are_not_learnt_from(seeds):
    with pytest.raises(ConfigError, match='seeds from 1000 on'):
        learning.learn_from_apartments(seeds)
