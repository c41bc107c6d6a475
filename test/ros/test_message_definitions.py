"""Definitions that bags embed, against the independent hashes of rosbags."""

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from osmabench_ros.base.contract import CONTRACT
from osmabench_ros.errors import ContractError
from osmabench_ros.ros.messages import message_definitions
from osmabench_ros.ros.qos import (
    count_repeated_messages,
    profile_for_playing,
    profile_for_recording,
)
from osmabench_ros.sequences.bags.bag_storage import OfferedQos
from osmabench_ros.sequences.bags.bag_types import BagTypes

NAMES = sorted({item.message_type for item in CONTRACT})
LATCHED = OfferedQos(durability='transient_local', depth=1)


def test_the_text_describes_the_very_type():
    hashes = {name: message_definitions.hash_of(name) for name in NAMES}
    types = BagTypes({name: message_definitions.definition_of(name) for name in NAMES})
    assert {name: types.type_hash(name) for name in NAMES} == hashes
    assert all(value.startswith('RIHS01_') for value in hashes.values())


def test_a_type_that_is_not_installed_is_named():
    for name in ('absent_msgs/msg/Thing', 'std_msgs/msg/Absent', 'nonsense'):
        with pytest.raises(ContractError, match=f'{name} is not installed'):
            message_definitions.definition_of(name)


def test_a_recorder_hears_every_publisher():
    reliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
    hasty = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    assert profile_for_recording([reliable]).reliability == ReliabilityPolicy.RELIABLE
    assert profile_for_recording([reliable, hasty]).reliability == ReliabilityPolicy.BEST_EFFORT
    assert profile_for_recording([latched]).durability == DurabilityPolicy.TRANSIENT_LOCAL
    assert profile_for_recording([latched, reliable]).durability == DurabilityPolicy.VOLATILE


def test_a_player_offers_what_was_offered():
    hasty = OfferedQos(reliability='best_effort')
    assert profile_for_playing('/image', [hasty]).reliability == ReliabilityPolicy.BEST_EFFORT
    assert profile_for_playing('/image', []).reliability == ReliabilityPolicy.RELIABLE
    map_profile = profile_for_playing('/map', [LATCHED])
    assert (map_profile.durability, map_profile.depth) == (DurabilityPolicy.TRANSIENT_LOCAL, 1)
    static = profile_for_playing('/tf_static', [hasty])
    assert static.durability == DurabilityPolicy.TRANSIENT_LOCAL
    assert [count_repeated_messages(item) for item in ([], [hasty], [LATCHED], [LATCHED] * 3)] == [
        0, 0, 1, 3,
    ]  # fmt: skip
