"""Replaces a mapping method: reads its input, and writes files in the form of its output.

Called as: python stand_in_method.py METHOD SEQUENCE OUTPUT [CONFIGURATION].
"""

import json
import sqlite3
import sys
from pathlib import Path

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from maps.importers import method_files

from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.pose import Similarity
from osmabench_ros.geometry.stamped_trajectory import format_tum, read_tum


def rtabmap(sequence, output):
    """Find all poses but the last, without error, from the first one on; then begin a new map."""
    calibration = (sequence / 'rtabmap_calib.yaml').read_text().removeprefix('%YAML:1.0\n---\n')
    sys.stdout.write(f'calibration {json.dumps(yaml.safe_load(calibration))}\n')
    true = read_tum(sequence / 'groundtruth.txt')
    origin = true.pose(0) @ OPTICAL_IN_LINK.inverse()
    found = true.select(np.arange(len(true) - 1)).transform(Similarity(origin.inverse()))
    method_files.write_rtabmap(output)
    with sqlite3.connect(output / 'rtabmap.db') as database:
        database.execute('UPDATE Node SET map_id = 1 WHERE id = 5')
    database.close()
    (output / 'rtabmap_camera_poses.txt').write_text(format_tum(found))


def main():
    method, sequence, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if method == 'rtabmap':
        rtabmap(sequence, output)
        return
    poses = np.loadtxt(sequence / 'traj.txt').reshape(-1, 4, 4)
    sys.stdout.write(f'{method} reads {len(poses)} frames\n')
    for configuration in sys.argv[4:]:
        text = Path(configuration).read_text()
        data = json.loads(text) if configuration.endswith('.json') else yaml.safe_load(text)
        sys.stdout.write(f'configuration {json.dumps(data, sort_keys=True)}\n')
    {
        'conceptgraphs': method_files.write_conceptgraphs,
        'bbq': method_files.write_bbq,
        'openscene': method_files.write_openscene,
        'hovsg': method_files.write_hovsg_flat,
    }[method](output)


main()
