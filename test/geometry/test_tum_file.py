import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, format_tum, read_tum


def test_a_trajectory_survives_the_file_to_the_nanosecond(tmp_path):
    turns = Rotation.from_rotvec(np.arange(9).reshape(3, 3) / 5)
    stamps = np.array(
        [1_700_000_000_123_456_789, 1_700_000_000_123_456_790, 1_700_000_001 * 10**9]
    )
    made = StampedTrajectory.from_quaternions(stamps, np.eye(3) * 2.5, turns.as_quat())
    (tmp_path / 'path.tum').write_text(format_tum(made))
    again = read_tum(tmp_path / 'path.tum')
    assert again.stamps_ns.tolist() == stamps.tolist()
    np.testing.assert_allclose(again.positions, made.positions)
    np.testing.assert_allclose(again.rotations, made.rotations, atol=1e-8)
    assert again.path_length_m == pytest.approx(2 * np.hypot(2.5, 2.5))


def test_lines_in_any_order_are_read_and_comments_skipped(write_file):
    path = write_file('path.txt', '# a comment\n2.5 1 0 0 0 0 0 1\n\n1e0 0 0 0 0 0 0 1\n')
    assert read_tum(path).stamps_ns.tolist() == [10**9, 25 * 10**8]


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('1 2 3\n', '8 numbers per line.*3 columns'),
        ('\n1 0 0 0 0 0 0 one\n', "'one'.* at row 0, column 8"),
        ('nan 0 0 0 0 0 0 1\n', 'a stamp is not a time'),
        ('1 0 0 0 0 0 0 0\n', 'quaternion .* has not length 1'),
        ('1 0 0 inf 0 0 0 1\n', 'not finite'),
        ('# nothing\n', 'no pose'),
        ('', 'no pose'),
        ('1 0 0 0 0 0 0 1\n1 0\n', 'number of columns changed'),
        ('1e999999 0 0 0 0 0 0 1\n', 'a stamp is not a time'),
        ('1e99999999999 0 0 0 0 0 0 1\n', 'a stamp is not a time'),
        (f'1 {"9" * 400} 0 0 0 0 0 1\n', 'not finite'),
    ],
)
def test_a_file_at_fault_is_named(text, message, tmp_path, write_file):
    path = write_file('path.tum', text)
    with pytest.raises(SequenceError, match=rf'path\.tum.*{message}'):
        read_tum(path)
    with pytest.raises(SequenceError, match=r'absent\.tum does not exist'):
        read_tum(tmp_path / 'absent.tum')
