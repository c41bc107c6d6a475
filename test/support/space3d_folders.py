"""Look-alikes of scene folders of Space3D-Bench: two rooms joined by a doorway."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

from osmabench_ros.suites.space3d.folder import ReferenceAnswer, ShownAnswer

QUESTIONS = {
    '1': 'How many chairs are there in the room?',
    '2': 'How are the sofa and the armchair placed with respect to each other?',
    '3': 'What is the navigable distance between the sofa and the bed?',
}
REFERENCES = {
    '1': ReferenceAnswer(
        answer='Number of objects: 6', prompt='The number should match the ground truth.'
    ),
    '2': ReferenceAnswer(
        answer=ShownAnswer(
            image_path='data/two_rooms/img/q2.png', example_answer='They face each other.'
        ),
        prompt='Decide by the image.',
    ),
    '3': ReferenceAnswer(answer='7.903 m', prompt='Navigable distances may be off by 0.5 m.'),
}
ANSWERS = {'1': 'There are 5 chairs.', '2': 'They face each other.', '3': 'It is 7.87 m.'}

DETECTIONS = {
    'living room': {
        'center': [2.0, 2.0, 1.25],
        'sizes': [4.0, 4.0, 2.5],
        'objects': {
            '0': {'class_name': 'sofa', 'center': [1.0, 3.5, 0.4], 'sizes': [2.0, 0.8, 0.8],
                  'rotation': [0.0, 0.0, 0.0, 1.0]},
            '4': {'class_name': 'book', 'center': [1.0, 3.5, 0.82], 'sizes': [0.2, 0.2, 0.05]},
        },
    },
    'bedroom': {
        'center': [6.0, 2.0, 1.25],
        'sizes': [4.0, 4.0, 2.5],
        'objects': {
            '7': {'class_name': 'bed', 'center': [7.0, 3.2, 0.3], 'sizes': [1.6, 1.4, 0.6]},
        },
    },
}  # fmt: skip

VERTICES = np.array(
    [(0, 0, 0), (4, 0, 0), (4, 1, 0), (4, 4, 0), (0, 4, 0), (4, 0, 0), (4, 1, 0), (4.2, 0, 0),
     (4.2, 1, 0), (8, 0, 0), (8, 4, 0), (4.2, 4, 0)], float
)  # fmt: skip
"""Two rooms of 4 m x 4 m and the doorway between them, y = 0 to 1; some vertices are repeated."""

TRIANGLES = np.array(
    [(0, 1, 2), (0, 2, 4), (2, 3, 4), (5, 7, 8), (5, 8, 6), (7, 9, 8), (8, 9, 10), (8, 10, 11)]
)
DOOR_POSTS = ((4.0, 1.0), (4.2, 1.0))
"""The corners that a way between the upper parts of both rooms bends around."""


def picture() -> bytes:
    """Return a small PNG."""
    stream = io.BytesIO()
    Image.new('RGB', (8, 6), (200, 30, 30)).save(stream, 'PNG')
    return stream.getvalue()


def made_folder(directory: Path, answers: dict[str, str] | None = None) -> Path:
    """Write the scene folder, and answers to it."""
    for folder in ('misc', 'img'):
        (directory / folder).mkdir(parents=True)
    lines = [f'{len(VERTICES)} {len(TRIANGLES)}']
    lines += [
        ' '.join(f'{value:g}' for value in row)
        for row in (*VERTICES.tolist(), *TRIANGLES.tolist())
    ]
    (directory / 'misc' / 'navmesh.txt').write_text('\n'.join(lines) + '\n')
    (directory / 'img' / 'q2.png').write_bytes(picture())
    references = {key: item.model_dump() for key, item in REFERENCES.items()}
    for name, content in (
        ('questions', QUESTIONS),
        ('ground_truth', references),
        ('misc/detections', DETECTIONS),
        ('answers', ANSWERS if answers is None else answers),
    ):
        (directory / f'{name}.json').write_text(json.dumps(content))
    return directory
