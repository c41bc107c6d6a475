"""English grammar for questions about objects: articles, plurals, colours, materials."""

import re
from functools import lru_cache

# Words that a noun phrase may use as colour; 'light' and 'dark' may come before them.
COLORS = (
    'black', 'white', 'gray', 'grey', 'red', 'green', 'blue', 'yellow', 'orange', 'brown',
    'purple', 'pink', 'beige', 'cyan', 'turquoise', 'gold', 'silver', 'cream', 'navy', 'teal',
    'maroon', 'olive', 'violet', 'magenta', 'tan', 'ivory', 'khaki',
)  # fmt: skip

# The eleven basic color terms of English (Berlin and Kay 1969), which people distinguish.
BASIC_COLORS = frozenset(
    ('black', 'white', 'gray', 'red', 'green', 'blue', 'yellow', 'orange', 'brown', 'purple',
     'pink')
)  # fmt: skip

_FAMILIES = {
    'navy': 'blue', 'cyan': 'blue', 'turquoise': 'blue', 'maroon': 'red', 'olive': 'green',
    'teal': 'green', 'silver': 'gray', 'grey': 'gray', 'gold': 'yellow', 'violet': 'purple',
    'magenta': 'purple', 'ivory': 'white', 'cream': 'white', 'beige': 'white', 'khaki': 'brown',
    'tan': 'brown',
}  # fmt: skip

_ALIKE = (
    {'black', 'navy'}, {'white', 'ivory', 'cream', 'beige', 'khaki', 'tan'},
    {'gray', 'silver', 'white', 'black', 'khaki'}, {'red', 'maroon', 'pink', 'orange'},
    {'green', 'olive', 'teal'}, {'blue', 'navy', 'cyan', 'turquoise', 'teal'},
    {'yellow', 'gold', 'orange', 'beige'}, {'brown', 'tan', 'maroon', 'orange', 'gold'},
    {'purple', 'violet', 'magenta', 'pink'},
)  # fmt: skip

# Material nouns and the adjectives made of them.
MATERIALS = {
    'wood': 'wooden', 'wool': 'woollen', 'metal': 'metal', 'glass': 'glass', 'plastic': 'plastic',
    'fabric': 'fabric', 'leather': 'leather', 'stone': 'stone', 'ceramic': 'ceramic',
    'marble': 'marble', 'brick': 'brick', 'concrete': 'concrete', 'paper': 'paper',
    'cardboard': 'cardboard', 'cotton': 'cotton', 'steel': 'steel', 'porcelain': 'porcelain',
    'rubber': 'rubber', 'wicker': 'wicker', 'bamboo': 'bamboo', 'granite': 'granite',
    'plaster': 'plaster', 'cloth': 'cloth', 'foam': 'foam', 'iron': 'iron', 'brass': 'brass',
}  # fmt: skip

SHADES = ('light', 'dark')

_IRREGULAR = {
    'person': 'people', 'man': 'men', 'woman': 'women', 'child': 'children', 'foot': 'feet',
    'shelf': 'shelves', 'knife': 'knives', 'leaf': 'leaves', 'loaf': 'loaves', 'mouse': 'mice',
    'bookshelf': 'bookshelves', 'half': 'halves', 'wife': 'wives', 'scarf': 'scarves',
    'photo': 'photos', 'piano': 'pianos', 'radio': 'radios', 'video': 'videos',
    'potato': 'potatoes', 'tomato': 'tomatoes', 'bus': 'buses', 'cactus': 'cacti',
}  # fmt: skip
_SINGULAR = {plural: singular for singular, plural in _IRREGULAR.items()}
_MASS = {'equipment', 'tableware', 'furniture', 'clothing', 'trash', 'art'}
_VOWEL_SOUND = re.compile(r'^(?!(?:uni|use|eu|one))[aeiou]|^hour')


def is_plural_only(noun: str) -> bool:
    """Return whether a label names a set or a mass, e.g. 'blinds', 'stairs', 'tableware'."""
    last = noun.split(' ')[-1]
    ends_as_plural = last.endswith('s') and not last.endswith(('ss', 'us', 'is'))
    is_singular = last in _IRREGULAR or last in ('gas', 'lens', 'canvas')
    return last in _MASS or (ends_as_plural and not is_singular)


def _measure(noun: str) -> str:
    """Return the unit in which a noun without singular is counted."""
    return 'piece' if noun.split(' ')[-1] in _MASS else 'set'


def bare(noun: str) -> str:
    """Return a noun phrase without article, countable."""
    return f'{_measure(noun)} of {noun}' if is_plural_only(noun) else noun


def indefinite(noun: str) -> str:
    """Return a noun phrase with 'a' or 'an'; 'blinds' becomes 'a set of blinds'."""
    phrase = bare(noun)
    return f'an {phrase}' if _VOWEL_SOUND.match(phrase) else f'a {phrase}'


def definite(noun: str) -> str:
    """Return a noun phrase with 'the'."""
    return f'the {bare(noun)}'


@lru_cache(maxsize=4096)
def plural(noun: str) -> str:
    """Return the plural of a singular noun phrase; the last word changes."""
    if is_plural_only(noun):
        return f'{_measure(noun)}s of {noun}'
    last = noun.split(' ')[-1]
    if last in _IRREGULAR:
        return noun.removesuffix(last) + _IRREGULAR[last]
    if re.search(r'(s|x|z|ch|sh)$', noun):
        return f'{noun}es'
    if re.search(r'[^aeiou ]y$', noun):
        return f'{noun[:-1]}ies'
    return f'{noun}s'


@lru_cache(maxsize=4096)
def singular(noun: str) -> str:
    """Return the singular of what `plural` makes; other nouns come back as they are."""
    counted = re.match('(?:sets|pieces) of (.+)', noun)
    if counted:
        return counted[1]
    last = noun.split(' ')[-1]
    if last in _SINGULAR:
        return noun.removesuffix(last) + _SINGULAR[last]
    for ending, replacement in (('ies', 'y'), ('es', ''), ('s', '')):
        candidate = noun[: -len(ending)] + replacement
        if noun.endswith(ending) and plural(candidate) == noun:
            return candidate
    return noun


def without_article(phrase: str) -> str:
    """Return a noun phrase without its leading article, 'set of' and 'piece of'."""
    stripped = re.sub(r'^(?:a|an|the)\s+', '', phrase.strip())
    return re.sub(r'^(?:set|piece)s? of\s+', '', stripped)


def color_name(word: str) -> str:
    """Return a colour in one spelling, lower case, 'grey' as 'gray'."""
    return ' '.join(word.lower().split()).replace('grey', 'gray')


def basic_color(word: str) -> str:
    """Return the basic color term of a colour, without shade: 'dark brown' is 'brown'."""
    last = word.lower().split()[-1] if word.split() else ''
    return _FAMILIES.get(last, last)


def confusable(first: str, second: str) -> bool:
    """Return whether two colours may be taken for each other under another light."""
    ends = {color_name(color).split()[-1] for color in (first, second) if color}
    return len(ends) == 1 or any(ends <= group for group in _ALIKE)


def material_noun(word: str) -> str:
    """Return the material noun of a noun or adjective: 'wooden' is 'wood'."""
    word = ' '.join(word.lower().split())
    return next((noun for noun, adjective in MATERIALS.items() if adjective == word), word)


def is_one_material(first: str, second: str) -> bool:
    """Return whether two nouns or adjectives mean one material."""
    return material_noun(first) == material_noun(second)


# Words that may come before a noun in a noun phrase.
ADJECTIVES = frozenset(COLORS) | frozenset(SHADES) | frozenset(MATERIALS.values())


@lru_cache(maxsize=4096)
def without_adjectives(phrase: str) -> str:
    """Return a noun phrase without leading colours and materials; one word always stays."""
    words = phrase.split()
    while len(words) > 1 and words[0] in ADJECTIVES:
        words = words[1:]
    return ' '.join(words)
