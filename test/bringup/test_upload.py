"""Copies of finished runs at an address of fsspec."""

import json

import pytest

from osmabench_ros.base.files import sha256_of
from osmabench_ros.bringup.runner.cluster import UPLOADED, check_address, upload
from osmabench_ros.errors import ConfigError

fsspec = pytest.importorskip('fsspec')


def test_an_upload_is_whole_once_its_digests_are_there(tmp_path):
    run = tmp_path / 'run'
    (run / 'map').mkdir(parents=True)
    files = {'report.json': b'{}', 'map/cloud.ply': bytes(1000)}
    for name, content in files.items():
        (run / name).write_bytes(content)
    memory = fsspec.filesystem('memory')
    upload(run, 'memory://bucket/small/run')
    found = json.loads(memory.cat_file(f'/bucket/small/run/{UPLOADED}'))
    assert found == {name: sha256_of(run / name) for name in files}
    assert memory.cat_file('/bucket/small/run/map/cloud.ply') == bytes(1000)
    # One that is whole is left as it is; one that was cut off is repeated.
    memory.rm('/bucket/small/run/report.json')
    upload(run, 'memory://bucket/small/run')
    assert not memory.exists('/bucket/small/run/report.json')
    memory.pipe_file(f'/bucket/small/run/{UPLOADED}', b'{"report.json')
    upload(run, 'memory://bucket/small/run')
    assert memory.exists('/bucket/small/run/report.json')


@pytest.mark.parametrize(
    ('url', 'reason'),
    [
        ('s3://me:hush@bucket/runs', 'credentials from their environment'),
        ('https://host/runs?token=hush', 'credentials from their environment'),
        ('nowhere://bucket', 'nowhere'),
    ],
)
def test_an_address_that_holds_a_secret_or_does_not_exist_is_refused(url, reason):
    with pytest.raises(ConfigError, match=reason) as error:
        check_address(url)
    assert 'hush' not in str(error.value)
