"""Replies as a well-behaved model would give them, made from the prompts of this package."""

import json
import re


def _json_after(heading, prompt):
    """Return the JSON on the line after a heading."""
    match = re.search(re.escape(heading) + r'[^\n]*\n\s*([\[{].*)', prompt)
    assert match, f'{heading!r} is not in the prompt:\n{prompt}'
    return json.loads(match.group(1))


STATEMENTS = ['red chair is next to white desk', 'white desk [used as a surface] is present']
OBJECTS = [{'name': 'chair', 'count': 2}, {'name': 'desk', 'count': 1}]
WRITTEN = [
    ('Existence-Positive', 'Is there a desk here?', 'Yes', ['desk']),
    ('Existence-Positive', 'Is there a chair here?', 'Yes', ['chair']),
    ('Existence-Negative', 'Is there an oven here?', 'No', ['oven']),
    ('Existence-Negative', 'Is there a piano here?', 'No', ['piano']),
    ('Measurement', 'How many chairs are there?', '2', ['chair']),
    ('Measurement', 'How many desks are there?', '7', ['desk']),
    ('Relations-Spatial', 'What is left of the desk?', 'Chair', ['desk']),
    ('Relations-Spatial', 'What is next to the desk?', 'Red chair', ['desk']),
    ('Object Attributes', 'What color is the desk?', 'White', ['desk']),
    ('Object Attributes', 'What color is the lamp?', 'possibly yellow', ['lamp']),
    ('Riddles', 'What has four legs?', 'Chair', ['chair']),
]

DINING = (
    'A dining room with 1 dining table in the center of the room, 6 dining chairs around it and 1 '
    'sideboard against the wall. 2 armchairs stand near the sideboard. 1 bench is along the wall.'
)
ROOMS = [{
    'room': 'office',
    'objects': [
        {'class': 'desk', 'count': 1, 'color': '', 'material': '', 'name': ''},
        {'class': 'laptop', 'count': 1, 'color': '', 'material': '', 'name': ''},
    ],
    'relations': [{'subject': 'laptop', 'relation': 'on', 'object': ['desk']}],
}]  # fmt: skip


def reply(prompt):
    """Answer a prompt of the package by the task that it sets."""
    if prompt.startswith('Write 12 different descriptions'):
        texts = [DINING, f' {DINING.upper()} ', DINING.replace('armchairs', 'sofas'), 'A room.']
        texts.append(DINING.replace('2 armchairs stand', 'Several armchairs, 2 of them, stand'))
        return json.dumps({'prompts': [{'prompt': text} for text in texts]})
    if prompt.startswith('Description, as JSON'):
        assert '"wardrobe"' in prompt
        return json.dumps({'rooms': ROOMS})
    if 'Write short statements' in prompt:
        return json.dumps({'statements': STATEMENTS, 'objects': OBJECTS})
    if 'Write questions in these categories' in prompt:
        keys = ('category', 'question', 'answer', 'objects')
        return json.dumps({'questions': [dict(zip(keys, row, strict=True)) for row in WRITTEN]})
    if 'give its id and a verdict' in prompt:
        asked = _json_after('Questions with the answers', prompt)
        return json.dumps({'checks': [_check(item) for item in asked]})
    if 'For each id say whether' in prompt:
        items = _json_after('As JSON, each item', prompt)
        same = [
            {'id': i['id'], 'same': i['given'].lower() in i['right'].lower(), 'reason': 'words'}
            for i in items
        ]
        return json.dumps({'verdicts': same})
    if 'Criterion: ' in prompt:
        return json.dumps({'result': '1', 'justification': 'seen'})
    asked = _json_after('Questions, as JSON', prompt)
    return json.dumps({'answers': [_answer(item) for item in asked]})


def _check(item):
    doubtful = 'piano' in item['question']
    return {
        'id': item['id'],
        'verdict': 'unsupported' if doubtful else 'keep',
        'reason': 'not to be seen' if doubtful else '',
    }


def _answer(item):
    value = {'yes_no': 'Yes', 'integer': '1', 'number': '1.5', 'text': 'chair'}
    value['coordinates'] = '1.0, 2.0, 0.5'
    return {'id': item['id'], 'answer': value[item['answer_type']], 'nodes': [3, 99999]}
