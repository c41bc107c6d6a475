"""The small house, a Habitat data set of 40 MB that is not part of the repository."""

from pathlib import Path

import pytest

from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene

_ROOT = Path(__file__).resolve().parents[3] / 'shared' / 'scenes' / 'small_house'


def load_small_house() -> Scene:
    """Load the house, or skip the test where its folder is missing."""
    if not _ROOT.is_dir():
        pytest.skip('needs ../shared/scenes/small_house')
    return load_scene(str(_ROOT / 'house.scene_dataset_config.json'))
