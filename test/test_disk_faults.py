"""A disk that is full or read-only at any moment: named, nothing half-written, resumable."""

import errno
import json

import pytest
from support import SUPPORT, TESTS
from support.programs import run_python
from support.sizes import few

STAGES = ('folder', 'manifest', 'truth', 'questions', 'map', 'snapshots', 'evaluation', 'report')
WITHOUT_LINKS = errno.EPERM


@pytest.fixture(scope='module')
def outcomes(fault_library, request, tmp_path_factory):
    """Broken promises, by fault and stage, for the faults of the tests that are run."""
    folder = tmp_path_factory.mktemp('stages')
    tests = [item for item in request.session.items if item.path == request.path]
    faults = {str(item.callspec.params.get('fault', WITHOUT_LINKS)) for item in tests}
    variables = {'LD_PRELOAD': fault_library, 'PYTHONPATH': str(TESTS)}
    words = SUPPORT / 'faulty_stages.py', folder, *sorted(faults)
    done = run_python(*words, variables=variables, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize('stage', STAGES)
@pytest.mark.parametrize(
    'fault', few([errno.ENOSPC, errno.EROFS], errno.ENOSPC), ids=['full', 'read-only']
)
def test_whatever_change_a_disk_refuses_the_stage_can_be_repeated(fault, stage, outcomes):
    changes, complaints = outcomes[str(fault)][stage]
    assert complaints == []
    assert changes >= 6


@pytest.mark.full
@pytest.mark.parametrize('stage', STAGES)
def test_nothing_is_linked(stage, outcomes):
    """So a file system without links is as good as any."""
    assert outcomes[str(WITHOUT_LINKS)][stage] == [0, []]
