"""One run, planned from the arguments of full_run.launch.py."""

import pytest

from osmabench_ros.base.progress import silent
from osmabench_ros.bringup.launching.single_run import plan_single_run
from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.live_method import live_method_names
from osmabench_ros.mappers.mapper import mapper_names


def test_a_mapper_that_does_not_exist_is_refused_with_all_there_are(tmp_path):
    values = {'condition': 'baseline', 'mapper': 'orcale', 'variables': {}}
    values |= {'scene': 'apartment', 'scene_name': '', 'seed': 5}
    with pytest.raises(ConfigError, match=r'mapper:=orcale .* mean "oracle"\?') as caught:
        plan_single_run(values, tmp_path, silent)
    for name in (*mapper_names(), *live_method_names()):
        assert name in str(caught.value)
