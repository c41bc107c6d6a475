"""Images and cameras in messages whose numbers contradict each other."""

from typing import Any

import numpy as np
import pytest
from support.world.frames import FRAMES

from osmabench_ros.base.contract import COLOR, DEPTH, DEPTH_INFO, TYPES
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bag_messages import make_codec

MAX = 2**32 - 1


@pytest.mark.parametrize(
    ('topic', 'changes'),
    [
        (COLOR, {'width': MAX, 'height': MAX, 'step': MAX}),
        (COLOR, {'encoding': '32FC1'}),
        (COLOR, {'data': np.zeros(0, np.uint8)}),
        (DEPTH, {'encoding': 'rgb8'}),
        (DEPTH_INFO, {'width': MAX, 'height': MAX}),
        (DEPTH_INFO, {'k': np.zeros(9)}),
    ],
)
def test_numbers_that_contradict_each_other_are_one_error(
    topic: str, changes: dict[str, Any]
) -> None:
    codec = make_codec()
    data = {name: bytes(item) for name, item in codec.serialized(FRAMES[0]).items()}
    message = codec.typestore.deserialize_cdr(data[topic], TYPES[topic])
    for name, value in changes.items():
        setattr(message, name, value)
    data[topic] = bytes(codec.typestore.serialize_cdr(message, TYPES[topic]))
    with pytest.raises((SequenceError, ValueError)) as caught:  # a ValueError gets its name above
        codec.frame(0, FRAMES[0].stamp_ns, data)
    assert 'Traceback' not in str(caught.value)


@pytest.mark.parametrize(('topic', 'cut'), [(COLOR, 60), (DEPTH_INFO, 3)])
def test_messages_that_are_cut_off_are_one_error(topic: str, cut: int) -> None:
    codec = make_codec()
    data = {name: bytes(item) for name, item in codec.serialized(FRAMES[0]).items()}
    data[topic] = data[topic][:cut]
    with pytest.raises(SequenceError, match=topic):
        codec.frame(0, FRAMES[0].stamp_ns, data)
