"""The one reader of YAML, JSON and XML: bounded in size, depth and repetition.

Strings hold no NUL and only characters that can be encoded, numbers are finite and of 64 bits, no
key is there twice: what no format of ours needs, and few readers are prepared for.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.reading import read_bytes, shown
from osmabench_ros.errors import OsmabenchError

WHOLE_NUMBERS = range(1 - 2**64, 2**64)
"""What a sign and 64 bits can hold."""

_DIGITS = bytes.maketrans(b'123456789E', b'000000000e')
_TWENTY = b'0' * 20
_LONGEST_NUMBER = 100
_LONG = re.compile(_TWENTY + b'0*')
_LISTS_ALONE = bytes.maketrans(b'{}', b'[]')
_NO_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))
_JSON_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}]')
_ODD_ESCAPE = re.compile(
    rb'\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]|(\\u(?:0000|[dD][89a-fA-F]))|\\.', re.DOTALL
)


def read_text(path: Path | str, error: type[OsmabenchError]) -> str:
    """Read an untrusted text file: UTF-8, without NUL, within the size limit of documents."""
    return _decoded(_document(path, error), shown(path), error)


def read_yaml(path: Path | str, error: type[OsmabenchError]) -> Any:
    """Read an untrusted YAML file; see `parse_yaml`."""
    return parse_yaml(_document(path, error), path, error)


def read_json(path: Path | str, error: type[OsmabenchError]) -> Any:
    """Read an untrusted JSON file; see `parse_json`."""
    return parse_json(_document(path, error), path, error)


def read_xml(path: Path | str, error: type[OsmabenchError]) -> ElementTree.Element:
    """Read the root element of an XML file; raises `error`, or LimitError if too large."""
    data, source = _document(path, error), shown(path)
    parser = ElementTree.XMLParser(target=_Elements(source, error))  # noqa: S314 - bounded
    try:
        parser.feed(data)
        root: ElementTree.Element = parser.close()
    except ElementTree.ParseError as fault:
        raise error(f'{source} is not valid XML: {fault}') from fault
    except (ValueError, LookupError) as fault:  # of encodings
        raise error(f'{source} is not valid XML: {fault}; save it as UTF-8') from fault
    return root


def parse_json(text: str | bytes, source: Path | str, error: type[OsmabenchError]) -> Any:
    """Return the content of a JSON text; raises `error`, which names `source`, or LimitError."""
    data, where = _bounded(text, source, error), shown(source)
    decoded = _decoded(data, where, error)
    _check_json_depth(data, where)
    escapes = _ODD_ESCAPE.finditer(data) if b'\\u' in data else ()
    if odd := next((found for found in escapes if found[1]), None):
        line = data.count(b'\n', 0, odd.start()) + 1
        raise error(f'{where}, line {line}: {odd[1].decode()} is no character; take it out')
    # Hooks for each number would double the time.
    hooks: dict[str, Any] = {'parse_int': _whole_number, 'parse_float': _finite_number}
    if not _has_large_numbers(data):
        hooks = {}
    try:
        return json.loads(
            decoded, object_pairs_hook=_unique, parse_constant=_finite_number, **hooks
        )
    except _RepeatedKeyError as fault:
        line = _line_of_repeated(decoded)
        raise error(f'{where}, line {line}: {_twice(fault.key)}') from fault
    except json.JSONDecodeError as fault:
        raise error(
            f'{where}, line {fault.lineno}, column {fault.colno}: is not JSON: {fault.msg}'
        ) from fault
    except _NumberError as fault:
        line = _line_of(fault.number, decoded)
        raise error(f'{where}, line {line}: {fault}') from fault


def parse_yaml(text: str | bytes, source: Path | str, error: type[OsmabenchError]) -> Any:
    """Return the content of a YAML text; raises as `parse_json`, also for bad aliases."""
    from osmabench_ros.base.limits.yaml_events import YamlReader

    data, where = _bounded(text, source, error), shown(source)
    return YamlReader(_decoded(data, where, error), where, error).content()


def parse_mapping(text: str, source: str, error: type[OsmabenchError]) -> dict[str, Any]:
    """Return the mapping in a YAML text, an empty one if it is empty; raises as `parse_yaml`."""
    data = parse_yaml(text, source, error)
    data = {} if data is None else data
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise error(f'{shown(source)} must be a YAML mapping of names, such as {{voxel_m: 0.05}}')
    return data


def _document(path: Path | str, error: type[OsmabenchError]) -> bytes:
    return read_bytes(path, error, allowance().document_bytes(), 'document_mib')


def _bounded(text: str | bytes, source: Path | str, error: type[OsmabenchError]) -> bytes:
    try:
        data = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as fault:
        raise error(f'{shown(source)} holds characters without an encoding') from fault
    if len(data) > allowance().document_bytes():
        raise exceeded(shown(source), f'has {len(data)} bytes', 'document_mib')
    return data


def _decoded(data: bytes, where: str, error: type[OsmabenchError]) -> str:
    try:
        text = data.decode('utf-8-sig')
    except UnicodeDecodeError as fault:
        line = data.count(b'\n', 0, fault.start) + 1
        raise error(
            f'{where}, line {line}: is not UTF-8 text (byte {data[fault.start]:#04x}); '
            'save it as UTF-8'
        ) from fault
    if '\0' in text:
        line = text.count('\n', 0, text.index('\0')) + 1
        raise error(f'{where}, line {line}: holds the character NUL; is it text, and UTF-8?')
    return text


class _NumberError(Exception):
    def __init__(self, number: str, fault: str) -> None:
        super().__init__(f'the number {shown_number(number)} {fault}')
        self.number = number


class _RepeatedKeyError(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return found


def _twice(key: str) -> str:
    return f'key "{shown(key)}" is there twice; leave one out'


def _line_of(number: str, text: str) -> int:
    """Return the line of a number in a JSON text, ignoring the content of strings."""
    tokens = re.finditer(rf'"(?:[^"\\]|\\.)*"|{re.escape(number)}', text)
    start = next((token.start() for token in tokens if token[0] == number), 0)
    return text.count('\n', 0, start) + 1


def _line_of_repeated(text: str) -> int:
    """Return the line where a key of a JSON text is repeated."""
    objects: list[set[str]] = []
    for token in _JSON_TOKEN.finditer(text):
        if token[0] == '{':
            objects.append(set())
        elif token[0] == '}':
            objects.pop()
        elif token[2]:
            key = json.loads(f'"{token[1]}"')
            if key in objects[-1]:
                return text.count('\n', 0, token.start()) + 1
            objects[-1].add(key)
    return 1


def _check_json_depth(data: bytes, where: str) -> None:
    """Refuse a text that is nested too deep, before it is parsed."""
    depth = allowance().depth
    bare = data.replace(b'\\\\', b'').replace(b'\\"', b'') if b'\\' in data else data
    # Most strings hold no brackets, so that their quotes meet and go at once.
    quoted = bare.translate(_LISTS_ALONE, _NO_STRUCTURE).replace(b'""', b'')
    brackets = re.sub(rb'"[^"]*"', b'', quoted)
    levels = 0
    while levels <= depth and b'[]' in brackets:
        brackets = brackets.replace(b'[]', b'')
        levels += 1
    # What is left otherwise was never closed, or opened; the parser says where.
    if max(levels, brackets.count(b'[')) > depth:
        raise exceeded(where, f'is nested deeper than {depth} levels', 'depth')


def _has_large_numbers(data: bytes) -> bool:
    """Return whether a number may have more than 64 bits or be infinite."""
    digits = data.translate(_DIGITS)
    if b'e000' in digits or b'e+000' in digits:
        return True
    return any(
        digits[max(0, found.start() - 1) : found.start()] != b'.'
        for found in _LONG.finditer(digits)
    )


def _whole_number(text: str) -> int:
    # Longer texts take time that grows with the square of their length.
    if len(text) > _LONGEST_NUMBER or int(text) not in WHOLE_NUMBERS:
        raise _NumberError(text, 'has more than 64 bits')
    return int(text)


def _finite_number(text: str) -> float:
    number = float(text)
    if not abs(number) < float('inf'):
        raise _NumberError(text, 'is not finite')
    return number


def shown_number(text: str) -> str:
    """Return a number as errors show it."""
    return text if len(text) <= 40 else f'{text[:20]}... ({len(text)} characters)'


class _Elements(ElementTree.TreeBuilder):
    """Builds the elements of an XML file; refuses document types and depth."""

    def __init__(self, source: str, error: type[OsmabenchError]) -> None:
        super().__init__()
        self._source, self._error, self._depth = source, error, 0

    def doctype(self, *_: Any) -> NoReturn:
        """Refuse document types: their entities can make a small file take all memory."""
        raise self._error(
            f'{self._source} declares a document type, where XML entities are defined; remove it'
        )

    def start(self, tag: Any, attrs: Any) -> ElementTree.Element:
        """Begin an element."""
        self._depth += 1
        if self._depth > allowance().depth:
            text = f'is nested deeper than {allowance().depth} levels'
            raise exceeded(self._source, text, 'depth')
        return super().start(tag, attrs)

    def end(self, tag: Any) -> ElementTree.Element:
        """End an element."""
        self._depth -= 1
        return super().end(tag)
