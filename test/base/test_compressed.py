import gzip
from pathlib import Path

import pytest

from osmabench_ros.base.documents import read_unpacked
from osmabench_ros.base.fence import VARIABLE
from osmabench_ros.errors import LimitError, QuestionError


@pytest.mark.parametrize('pack', [bytes, gzip.compress])
def test_a_text_comes_out_packed_or_not(tmp_path: Path, pack: type[bytes]) -> None:
    path = tmp_path / 'a.jsonl'
    path.write_bytes(pack(b'{"a": 1}\n'))
    assert read_unpacked(path, QuestionError) == b'{"a": 1}\n'


@pytest.mark.parametrize('cut', [5, 20, -4])
def test_a_damaged_gzip_is_named(tmp_path: Path, cut: int) -> None:
    path = tmp_path / 'a.jsonl.gz'
    path.write_bytes(gzip.compress(b'{"a": 1}\n')[:cut])
    with pytest.raises(QuestionError, match=r'a\.jsonl\.gz'):
        read_unpacked(path, QuestionError)


def test_a_flipped_bit_in_a_gzip_is_named(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(bytes(range(256)) * 10))
    data[12] ^= 255
    (tmp_path / 'a.gz').write_bytes(data)
    with pytest.raises(QuestionError, match=r'a\.gz'):
        read_unpacked(tmp_path / 'a.gz', QuestionError)


def test_a_bomb_stops_at_the_size_of_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'a.gz'
    path.write_bytes(gzip.compress(bytes(10 << 20)))
    monkeypatch.setenv(VARIABLE, '0.01')
    with pytest.raises(LimitError, match=rf'a\.gz.*{VARIABLE}'):
        read_unpacked(path, QuestionError)
