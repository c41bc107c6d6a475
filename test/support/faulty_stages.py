"""Writes results in a process that preloads faults.c, and meets a fault at every change in turn.

Called with a folder to work in and error numbers; prints as JSON, by number and stage, how many
changes to the disk it makes, and the broken promises when one of them was refused.
"""

import ctypes
import errno
import json
import os
import shutil
import sys
from pathlib import Path

from osmabench_ros.base.files import DRAFT_PREFIX, MARKER, claim_folder, write_json
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.maps.storage import SnapshotFolder, write_map
from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.runs.evaluation import EvaluationInputs, evaluate_run
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.matrix_on_disk import claim
from osmabench_ros.runs.report_model import RunReport, Status
from osmabench_ros.runs.run_manifest import lock_folder
from osmabench_ros.sequences.ground_truth import write_ground_truth
from osmabench_ros.vqa.exact.generation import questions_about
from osmabench_ros.vqa.question_files import write_records
from support.world.maps import ground_truth, labelled_map, write_inputs
from support.world.runs import matrix_config, plans_of

CONFIG = matrix_config(scenes=[{'reference': 'apartment', 'seed': 3}])


def hold(root):
    with lock_folder(root):
        claim(root, CONFIG, plans_of(CONFIG, root), lambda _plan: '1')


def evaluate(root):
    identity = RunIdentity(SceneKey('d', 's', 3), 'baseline', 'oracle', 'none')
    inputs = root.parent / 'inputs'
    map_directory, truth = inputs / 'map', inputs / 'ground_truth'
    if not inputs.exists():
        write_inputs(inputs, labelled_map())
    evaluate_run(EvaluationInputs(identity, map_directory, truth, root / 'run', device='cpu'), [])


def report(root):
    plans = plans_of(CONFIG, root)
    failed = RunReport(run_id=plans[0].identity.run_id, status=Status.FAILED, error='why')
    write_matrix_report(CONFIG, plans, [failed], root)


STAGES = {
    'folder': hold,
    'manifest': lambda root: write_json(root / 'run' / 'manifest.json', {'run_id': 'x'}),
    'truth': lambda root: write_ground_truth(ground_truth(), root / 'shared' / 'ground_truth'),
    'questions': lambda root: write_records(
        root / 'shared' / 'questions.jsonl', questions_about(ground_truth(), scene='s', seed=3)
    ),
    'map': lambda root: write_map(labelled_map(), root / 'run' / 'map'),
    'snapshots': lambda root: (
        SnapshotFolder(root / 'run' / 'maps', 5).keep(labelled_map()) and None
    ),
    'evaluation': evaluate,
    'report': report,
}


def content(root):
    files = (path for path in root.rglob('*') if path.is_file() and path.name != MARKER)
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def begin(root):
    shutil.rmtree(root, ignore_errors=True)
    claim_folder(root)


def complaints(stage, root, number):
    library = ctypes.CDLL(None)

    def arm(changes):
        library.faults_arm(os.fsencode(root), ctypes.c_long(changes), number)

    begin(root)
    arm(0 if number == errno.EPERM else 10**6)
    stage(root)
    total, whole, found = library.faults_counted(), content(root), []
    for changes in range(total):
        begin(root)
        arm(changes)
        try:
            stage(root)
            error = ''
        except OsmabenchError as raised:
            error = str(raised)
            if str(root) not in error or 'choose another' not in error:
                found.append(f'{changes}: no path or no remedy: {error}')
        finally:
            library.faults_arm(b'', 0, 0)
        left = content(root)
        if not error and left != whole:
            found.append(f'{changes}: no error, but {sorted(left)}')
        found += [f'{changes}: {name} is half' for name in left if left[name] != whole.get(name)]
        found += [f'{changes}: {path} stays' for path in root.rglob(f'{DRAFT_PREFIX}*')]
        if error:
            stage(root)
        if content(root) != whole:
            found.append(f'{changes}: not the same afterwards')
    return total, found


if __name__ == '__main__':
    place = Path(sys.argv[1]) / 'root'
    print(
        json.dumps(
            {
                number: {
                    name: complaints(stage, place, int(number)) for name, stage in STAGES.items()
                }
                for number in sys.argv[2:]
            }
        )
    )
