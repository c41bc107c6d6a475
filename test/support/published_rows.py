"""Rows of published answer files."""

import json

import numpy as np

OPTIONS = 'A. north B. east C. south D. west'


def line(task, index, answer, pred=None, options=OPTIONS):
    row = {'index': index, 'task': task, 'answer': answer, 'options': options, 'images': ['x']}
    return json.dumps(row if pred is None else {**row, 'pred': pred})


def corners(low, high):
    axes = np.array([low, high], float)
    return [[axes[i, 0], axes[j, 1], axes[k, 2]]
            for i in (0, 1) for j in (0, 1) for k in (0, 1)]  # fmt: skip


def boxed(object_id, low, high, **more):
    return {'scene_id': 's', 'object_id': str(object_id), 'ann_id': '0',
            'bbox': corners(low, high), **more}  # fmt: skip


def change(kind, *rows):
    return {
        'context_change': 'The chair has moved.',
        'change_type': kind,
        'questions_answers': [
            {
                'question_id': str(i),
                'question_type': types,
                'question': 'Where?',
                'answer': answer,
                'predicted_answer': said,
            }
            for i, (types, answer, said) in enumerate(rows)
        ],
    }
