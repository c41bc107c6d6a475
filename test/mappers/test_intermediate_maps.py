from dataclasses import replace

import pytest
from support.world.frames import FRAMES, LABELS

from osmabench_ros.mappers.mapper import make_mapper
from osmabench_ros.maps.storage import pack_map

FEW_OBJECTS = [replace(frame, instance=frame.instance % 12) for frame in FRAMES]


@pytest.mark.parametrize('name', ['oracle', 'noisy_oracle', 'appearance'])
def test_looking_at_the_map_meanwhile_does_not_change_it(name):
    maps = []
    for look in (False, True):
        mapper = make_mapper(name, label_set=LABELS, seed=3, options={})
        for frame in FEW_OBJECTS:
            mapper.integrate(frame)
            if look:
                pack_map(mapper.semantic_map(final=False))
        maps.append(pack_map(mapper.semantic_map(final=True)))
    assert maps[0] == maps[1]


@pytest.mark.parametrize('name', ['oracle', 'noisy_oracle', 'appearance'])
def test_no_frames_give_an_empty_map(name):
    made = make_mapper(name, label_set=LABELS, options={}).semantic_map(final=True)
    assert len(made.dense.points) == 0
    assert made.graph.nodes == ()
