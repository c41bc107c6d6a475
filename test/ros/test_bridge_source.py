import pytest
from support.world.frames import FRAMES, INFO, LABELS, write_frames

from osmabench_ros.base.settings import with_settings
from osmabench_ros.errors import ConfigError, OsmabenchError
from osmabench_ros.nodes.frame_player import open_source
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.sequences.layout import OSMA, SequenceInfo
from osmabench_ros.sequences.writer import BagWriter, FolderWriter


def values(**changes):
    return with_settings(BridgeSettings(), changes, 'parameter ')


def test_folders_and_bags_are_played_as_they_say(tmp_path):
    write_frames(FolderWriter(tmp_path / 'folder', OSMA, INFO))
    write_frames(BagWriter(tmp_path / 'bag', INFO))
    for name in ('folder', 'bag'):
        source = open_source(values(sequence=str(tmp_path / name)))
        assert (source.dataset, source.scene, source.condition) == ('small', 'room', 'camera')
        assert (source.simulator, source.lighting_known) == ('recorded', False)
        assert source.frames.label_set.classes == LABELS.classes
        assert len(source.frames) == len(FRAMES)
        source.frames.close()


def test_a_sequence_of_somebody_else_gets_its_name_from_its_folder(tmp_path):
    write_frames(FolderWriter(tmp_path / 'kitchen', OSMA, SequenceInfo(label_set=LABELS)))
    source = open_source(values(sequence=str(tmp_path / 'kitchen'), condition='dynamic'))
    assert (source.dataset, source.scene) == ('sequences', 'kitchen')
    assert source.condition == 'dynamic'


@pytest.mark.parametrize('changes', [{'scene_name': 'x'}, {'path_file': 'x'}, {'goals': 6}])
def test_what_describes_a_simulation_is_refused(tmp_path, changes):
    write_frames(FolderWriter(tmp_path / 'room', OSMA, INFO))
    [name] = changes
    with pytest.raises(ConfigError, match=f'"{name}" describes a simulation'):
        open_source(values(sequence=str(tmp_path / 'room'), **changes))


def test_the_condition_is_the_recorded_one(tmp_path):
    write_frames(FolderWriter(tmp_path / 'room', OSMA, INFO))
    open_source(values(sequence=str(tmp_path / 'room'), condition='camera'))
    with pytest.raises(ConfigError, match='was recorded under "camera"'):
        open_source(values(sequence=str(tmp_path / 'room'), condition='dynamic'))


def test_topics_of_a_bag_need_the_bag(tmp_path):
    write_frames(BagWriter(tmp_path / 'bag', INFO))
    bag = str(tmp_path / 'bag')
    with pytest.raises(OsmabenchError, match='has no message on /rgb'):
        open_source(values(sequence=bag, sequence_topics='{color: /rgb}'))
    with pytest.raises(ConfigError, match='"sequence_topics" is about a bag'):
        open_source(values(sequence_topics='{color: /rgb}'))
