"""Rooms by random specifications, for `proved_questions.py`."""

from collections.abc import Iterator

import numpy as np

from osmabench_ros.base.strict import validated
from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.apartment.specified import build_specified_apartment
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.specification import SceneSpecification

CARRIERS = ('desk', 'table', 'coffee table', 'dresser', 'nightstand', 'console table')
CARRIED = (
    'laptop', 'book', 'cup', 'bowl', 'plate', 'bottle', 'vase', 'candle', 'apple', 'alarm clock',
)  # fmt: skip
STANDING = ('chair', 'stool', 'plant', 'trash can', 'laundry basket', 'floor lamp', 'office chair')
COLORS = ('red', 'blue', 'green', 'white')


def specified_scenes(seed: int, rooms: int) -> Iterator[Scene]:
    """Yield scenes of one room each; what cannot be built is drawn again."""
    rng = np.random.default_rng([seed, 31])
    made = 0
    while made < rooms:
        wanted = validated(SceneSpecification, _drawn(rng, made), 'a drawn specification')
        try:
            yield build_specified_apartment(wanted, seed)
        except SceneError:
            continue
        made += 1


def _drawn(rng: np.random.Generator, number: int) -> dict[str, object]:
    objects: list[dict[str, object]] = []
    relations: list[dict[str, str]] = []

    def add(name: str, relation: str, target: str, *, most: int = 1, color: str = '') -> None:
        count = int(rng.integers(1, most + 1))
        objects.append({'class': name, 'count': count, 'color': color})
        relations.append({'subject': name, 'relation': relation, 'object': target})

    tables = _some(rng, CARRIERS, 2)
    objects += [{'class': name} for name in tables]
    for index, name in enumerate(_some(rng, CARRIED, 5)):
        color = str(rng.choice(COLORS)) if index == 0 else ''
        add(name, 'on', tables[index % 2], most=2 if index > 2 else 1, color=color)
    for name in _some(rng, STANDING, 3):
        add(name, str(rng.choice(['next to', 'near'])), tables[0], most=2)
    if tables[0] in ('desk', 'table'):
        add('box', 'under', tables[0])
    else:
        objects.append({'class': 'bookshelf'})
        add('box', 'in', 'bookshelf')
    return {
        'name': f'room_{number}',
        'rooms': [{'room': 'study', 'objects': objects, 'relations': relations}],
    }


def _some(rng: np.random.Generator, names: tuple[str, ...], count: int) -> list[str]:
    return [str(name) for name in rng.choice(names, count, replace=False)]
