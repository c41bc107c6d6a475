import gzip
import io
import zipfile
from pathlib import Path

import pytest

from osmabench_ros.base.limits.allowance import Allowance, limited_to
from osmabench_ros.base.limits.meter import Meter, checked_zip, read_member, read_unpacked
from osmabench_ros.errors import LimitError, MapError, QuestionError


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


def test_a_bomb_stops_at_the_size_of_documents(tmp_path: Path) -> None:
    path = tmp_path / 'a.gz'
    path.write_bytes(gzip.compress(bytes(10 << 20)))
    limits = Allowance(document_mib=1)
    with limited_to(limits), pytest.raises(LimitError, match=r'a\.gz.*document_mib'):
        read_unpacked(path, QuestionError)


def test_time_is_limited(tmp_path: Path) -> None:
    path = tmp_path / 'a.gz'
    path.write_bytes(gzip.compress(bytes(10 << 20)))
    limits = Allowance(seconds=1e-9, seconds_per_mib=1e-9)
    with limited_to(limits), pytest.raises(LimitError, match='processor time'):
        read_unpacked(path, QuestionError)


def archive(**members: bytes) -> io.BytesIO:
    made = io.BytesIO()
    with zipfile.ZipFile(made, 'w', zipfile.ZIP_DEFLATED) as target:
        for name, data in members.items():
            target.writestr(name, data)
    return made


def test_a_member_comes_out() -> None:
    meter = Meter('it', 100)
    with checked_zip(archive(a=b'text'), meter) as opened:
        assert read_member(opened, 'a', meter) == b'text'
        with pytest.raises(MapError, match='lacks "b"'):
            read_member(opened, 'b', meter)


def test_members_are_refused_together_and_one_by_one() -> None:
    with limited_to(Allowance(memory_mib=1, memory_ratio=1)):
        meter = Meter('it', 100)
        many = archive(**{str(i): bytes(200 << 10) for i in range(6)})
        with pytest.raises(LimitError, match='it: unpacks to more'), checked_zip(many, meter):
            pass
        with checked_zip(archive(a=bytes(600 << 10)), meter) as opened:
            read_member(opened, 'a', meter)
            with pytest.raises(LimitError, match='it: unpacks to more'):
                read_member(opened, 'a', meter)


def test_a_member_that_gives_more_than_it_declares_is_refused() -> None:
    data = bytearray(archive(a=bytes(5000)).getvalue())
    entry = data.rindex(b'PK\x01\x02')
    for at, size in ((22, data.index(b'PK\x03\x04')), (24, entry)):
        data[size + at : size + at + 4] = (100).to_bytes(4, 'little')
    meter = Meter('it', len(data))
    with (
        pytest.raises((MapError, zipfile.BadZipFile)),
        checked_zip(io.BytesIO(data), meter) as opened,
    ):
        read_member(opened, 'a', meter)
