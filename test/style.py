"""Hold the style of the project: phrases, names of functions, code lines, words of docs.

`make lint` runs it. The limits in style_limits.yaml may only fall: `python test/style.py --lower`
writes the present values where they are lower. A change that needs a higher limit edits that file,
so that reviewers see it.
"""

import ast
import collections
import io
import pathlib
import re
import sys
import tokenize

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMITS = pathlib.Path(__file__).with_name('style_limits.yaml')
PACKAGE = 'osmabench_ros'

# A phrase that readers of English stumble over, and the better one.
PHRASES = {
    'what is': (
        r'\b[Ww]hat (is|are|a|an|the|it|its|was|were|has|no|nothing|to|others?|they|one|of|'
        r'stands?|lies|comes?|goes|falls?|makes?|takes?|holds?|differs)\b',
        'name the noun: "the mask", "the values of"',
    ),
    'that of': (r'\b(that|those) of\b', "repeat the noun, or use 's"),
    'thing': (r'\bthings?\b', 'object, item, or the noun itself'),
    'figure': (r'\bfigures?\b', 'metric or value'),
    'is no': (r'(?<![Tt]here )\b(is|are) no (?!longer\b)\w+', '"is not a"'),
    'beside': (r'\bbesides?\b', 'next to, with, in addition to'),
    'lies': (r'\b(lies|lay|lying)\b', 'is'),
    'stands': (r'\b(stands?|stood)\b', 'is'),
    'alone': (r'\balone\b', 'only'),
    'of its own': (r"\bof (its|their|your|one's|his|our) own\b", 'own, separate'),
    'told': (r'\b(told|tells?|telling)\b', 'given, reports, shows'),
    'mend': (r'\bmend(s|ed|ing)?\b', 'fix'),
    'anew': (r'\b(anew|seldom|[Ss]omebody)\b', 'again, rarely, someone'),
    'foreign': (r'\bforeign\b', 'third-party'),
    'hears': (r'\b(heard|hears?)\b', 'receives'),
    'whose': (r'\bwhose\b', 'with, of which'),
}
PARTICIPLES = {
    'drawn', 'found', 'given', 'held', 'kept', 'known', 'left', 'lost', 'made', 'meant', 'said',
    'seen', 'shown', 'taken', 'told', 'worn', 'written',
}  # fmt: skip
NOT_PARTICIPLES = {'embed', 'feed', 'need', 'seed', 'speed', 'shed', 'exceed', 'proceed'}


def find_prose(path, text):
    """Yield (first line, text) of docstrings, comments and errors, or of the lines of a page."""
    if path.suffix == '.md':
        yield from enumerate(text.splitlines(), 1)
        return
    for node in ast.walk(ast.parse(text)):
        # Docstrings, and texts below fields.
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, 'value', None), str):
            yield node.lineno, node.value.value
        if isinstance(node, ast.Raise):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def find_phrases(path, text):
    """Yield (phrase, line number, words found, better phrase) for every phrase of a file."""
    for first, piece in find_prose(path, text):
        for name, (pattern, better) in PHRASES.items():
            for match in re.finditer(pattern, piece):
                yield name, first + piece.count('\n', 0, match.start()), match.group(), better


def count_code_lines(text):
    """Count the lines with a token that is not a comment or part of a docstring."""
    documented = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (
            ast.get_docstring(node)
        ):
            documented |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
    skipped |= {tokenize.DEDENT, tokenize.ENDMARKER}
    rows = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            rows |= set(range(token.start[0], token.end[0] + 1))
    return len(rows - documented)


def find_participles(text):
    """Yield (line number, name) of functions that are named by a participle."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            decorators = {getattr(d, 'id', getattr(d, 'attr', '')) for d in node.decorator_list}
            first = node.name.strip('_').split('_')[0]
            named = first in PARTICIPLES or (first.endswith('ed') and first not in NOT_PARTICIPLES)
            if named and not decorators & {'property', 'cached_property'}:
                yield node.lineno, node.name


def measure_style(root):
    """Return the values by key of style_limits.yaml, and the places of each key as lines."""
    values, places = collections.Counter(), collections.defaultdict(list)
    folders = (PACKAGE, 'launch', 'examples', 'docs')
    paths = [path for folder in folders for path in (root / folder).rglob('*.py')]
    for path in sorted([*paths, *(root / 'docs').rglob('*.md'), *root.glob('*.md')]):
        parts = path.relative_to(root).parts
        text = path.read_text(encoding='utf-8')
        if path.suffix == '.md' and (parts[0] == 'docs' or parts == ('README.md',)):
            values['words of README and docs'] += len(text.split())
        if parts[0] == PACKAGE:
            part = parts[1] if len(parts) > 2 else PACKAGE
            values[f'code lines of {part}'] += count_code_lines(text)
        where = '/'.join(parts)
        for name, line, words, better in find_phrases(path, text):
            values[f'phrase "{name}"'] += 1
            places[f'phrase "{name}"'].append(f'{where}:{line}: "{words}": {better}')
        if path.suffix == '.py':
            for line, name in find_participles(text):
                key = 'functions named by a participle'
                values[key] += 1
                places[key].append(f'{where}:{line}: {name}: begin with a verb')
    return values, places


def main(arguments):
    """Print what exceeds its limit, with places; exit with 1 if anything does."""
    limits = yaml.safe_load(LIMITS.read_text())
    values, places = measure_style(ROOT)
    over = {key: value for key, value in values.items() if value > limits.get(key, 0)}
    if '--lower' in arguments:
        lower = {key: min(limits.get(key, value), value) for key, value in values.items()}
        LIMITS.write_text('# The most of each; see style.py.\n' + yaml.safe_dump(lower, width=99))
        over = {key: value for key, value in values.items() if value > lower[key]}
    for key, value in sorted(over.items()):
        print(f'{key}: {value}, at most {limits.get(key, 0)} (test/style_limits.yaml)')
        for place in places[key]:
            print(f'  {place}')
    return bool(over)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
