"""Stands in for a mapping method: reads what it was given and writes what the method writes.

Called as: python stand_in_method.py METHOD SEQUENCE OUTPUT [CONFIGURATION].
"""

import json
import sys
from pathlib import Path

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from maps.importers.method_files import (
    write_bbq,
    write_conceptgraphs,
    write_hovsg_flat,
    write_openscene,
)


def main() -> None:
    method, sequence, output = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    poses = np.loadtxt(sequence / 'traj.txt').reshape(-1, 4, 4)
    sys.stdout.write(f'{method} reads {len(poses)} frames\n')
    for configuration in sys.argv[4:]:
        text = Path(configuration).read_text()
        data = json.loads(text) if configuration.endswith('.json') else yaml.safe_load(text)
        sys.stdout.write(f'configuration {json.dumps(data, sort_keys=True)}\n')
    {
        'conceptgraphs': write_conceptgraphs,
        'bbq': write_bbq,
        'openscene': write_openscene,
        'hovsg': write_hovsg_flat,
    }[method](output)


main()
