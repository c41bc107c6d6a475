"""The one reader of YAML, JSON and XML: bounded in size, depth and repetition, no key twice."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from osmabench_ros.base.fence import limit_error, limit_factor
from osmabench_ros.base.reading import opened, read_bytes
from osmabench_ros.errors import OsmabenchError

MAX_DEPTH = 64
MAX_ALIASES = 1000
MAX_REPEATED = 100_000
"""Values of a YAML file that aliases may repeat."""

_MAX_MIB = 256
_GZIP_MAGIC = b'\x1f\x8b'
_WHOLE_NUMBERS = range(1 - 2**64, 2**64)
_LARGE_NUMBER = re.compile(rb'[eE]\+?[0-9]{3}|(?<![.0-9])[0-9]{20}')
_LISTS_ALONE = bytes.maketrans(b'{}', b'[]')
_NO_STRUCTURE = bytes(set(range(256)) - set(b'[]{}"'))
_ODD_ESCAPE = re.compile(
    rb'\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]|(\\u(?:0000|[dD][89a-fA-F]))|\\.', re.DOTALL
)


def document_limit() -> int:
    """Return the size (bytes) up to which texts are read."""
    return int(limit_factor() * _MAX_MIB * 2**20)


def read_text(path: Path | str, error: type[OsmabenchError]) -> str:
    """Read an untrusted text file: UTF-8, without NUL, within the size limit of documents."""
    return _checked(_document(path, error), path, error)[1]


def read_yaml(path: Path | str, error: type[OsmabenchError]) -> Any:
    """Read an untrusted YAML file; see `parse_yaml`."""
    return parse_yaml(_document(path, error), path, error)


def read_json(path: Path | str, error: type[OsmabenchError]) -> Any:
    """Read an untrusted JSON file; see `parse_json`."""
    return parse_json(_document(path, error), path, error)


def read_xml(path: Path | str, error: type[OsmabenchError]) -> ElementTree.Element:
    """Read the root element of an XML file; raises `error`, or LimitError if too large."""
    parser = DefusedXMLParser(target=_Elements(path), forbid_dtd=True)
    try:
        parser.feed(_document(path, error))
        root: ElementTree.Element = parser.close()
    except DefusedXmlException as fault:
        raise error(
            f'{path} declares a document type, where XML entities are defined; remove it'
        ) from fault
    except (ElementTree.ParseError, ValueError, LookupError) as fault:  # also of encodings
        raise error(f'{path} is not valid XML: {fault}') from fault
    return root


def read_unpacked(path: Path, error: type[OsmabenchError]) -> bytes:
    """Read a text, maybe gzip; raises `error` if it is damaged, LimitError if too large."""
    with opened(path, error) as (file, _):
        packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        file.seek(0)
        stream: Any = gzip.GzipFile(fileobj=file) if packed else file
        try:
            data: bytes = stream.read(document_limit() + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
            raise error(f'{path} is damaged: {fault}; copy it again') from fault
    if len(data) > document_limit():
        raise limit_error(path, f'unpacks to more than {document_limit()} bytes')
    return data


def parse_json(text: str | bytes, source: Path | str, error: type[OsmabenchError]) -> Any:
    """Return the content of a JSON text; raises `error`, which names `source`, or LimitError."""
    data, decoded = _checked(text, source, error)
    _check_json_depth(data, source)
    escapes = _ODD_ESCAPE.finditer(data) if b'\\u' in data else ()
    if odd := next((found for found in escapes if found[1]), None):
        line = data.count(b'\n', 0, odd.start()) + 1
        raise error(f'{source}, line {line}: {odd[1].decode()} is not a character; take it out')
    # Hooks for each number would double the time.
    hooks: dict[str, Any] = {}
    if _LARGE_NUMBER.search(data):
        hooks = {'parse_int': _whole_number, 'parse_float': _finite_number}
    try:
        return json.loads(
            decoded, object_pairs_hook=_unique, parse_constant=_finite_number, **hooks
        )
    except json.JSONDecodeError as fault:
        raise error(
            f'{source}, line {fault.lineno}, column {fault.colno}: is not JSON: {fault.msg}'
        ) from fault
    except ValueError as fault:
        raise error(f'{source}: {fault}') from fault


def parse_yaml(text: str | bytes, source: Path | str, error: type[OsmabenchError]) -> Any:
    """Return the content of a YAML text; raises as `parse_json`, also for bad aliases."""
    _, decoded = _checked(text, source, error)
    try:
        _check_yaml(decoded, source)
        return yaml.load(decoded, _Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as fault:
        mark = getattr(fault, 'problem_mark', None) or getattr(fault, 'context_mark', None)
        place = f', line {mark.line + 1}, column {mark.column + 1}' if mark else ''
        reason = getattr(fault, 'problem', None) or ' '.join(str(fault).split())
        if not isinstance(fault, yaml.constructor.ConstructorError):
            reason = f'is not YAML: {reason}'
        raise error(f'{source}{place}: {reason}') from fault
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as fault:
        # Conversions of values, such as dates, raise all of these.
        raise error(f'{source}: holds a malformed value: {fault}') from fault


def parse_mapping(text: str, source: str, error: type[OsmabenchError]) -> dict[str, Any]:
    """Return the mapping in a YAML text, an empty one if it is empty; raises as `parse_yaml`."""
    data = parse_yaml(text, source, error)
    data = {} if data is None else data
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise error(f'{source} must be a YAML mapping of names, such as {{voxel_m: 0.05}}')
    return data


def _document(path: Path | str, error: type[OsmabenchError]) -> bytes:
    return read_bytes(path, error, document_limit())


def _checked(
    content: str | bytes, source: Path | str, error: type[OsmabenchError]
) -> tuple[bytes, str]:
    """Return a document as UTF-8 and as text, if it is not too large and is text."""
    try:
        data = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as fault:
        raise error(f'{source} holds characters without an encoding') from fault
    if len(data) > document_limit():
        raise limit_error(source, f'has {len(data)} bytes')
    try:
        text = data.decode('utf-8-sig')
    except UnicodeDecodeError as fault:
        line = data.count(b'\n', 0, fault.start) + 1
        raise error(
            f'{source}, line {line}: is not UTF-8 text (byte {data[fault.start]:#04x}); '
            'save it as UTF-8'
        ) from fault
    if '\0' in text:
        line = text.count('\n', 0, text.index('\0')) + 1
        raise error(f'{source}, line {line}: holds the character NUL; is it text, and UTF-8?')
    return data, text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f'key "{key}" is there twice; leave one out')
    return found


def _check_json_depth(data: bytes, source: Path | str) -> None:
    """Refuse a text that is nested too deep, before it is parsed."""
    bare = data.replace(b'\\\\', b'').replace(b'\\"', b'') if b'\\' in data else data
    # Most strings hold no brackets, so that their quotes meet and go at once.
    quoted = bare.translate(_LISTS_ALONE, _NO_STRUCTURE).replace(b'""', b'')
    brackets = re.sub(rb'"[^"]*"', b'', quoted)
    levels = 0
    while levels <= MAX_DEPTH and b'[]' in brackets:
        brackets = brackets.replace(b'[]', b'')
        levels += 1
    # The other brackets were never closed, or never opened; the parser says where.
    if max(levels, brackets.count(b'[')) > MAX_DEPTH:
        raise _deep(source)


def _deep(source: Path | str) -> OsmabenchError:
    return limit_error(source, f'is nested deeper than {MAX_DEPTH} levels')


def _whole_number(text: str) -> int:
    # Longer texts take time that grows with the square of their length.
    if len(text) > 100 or int(text) not in _WHOLE_NUMBERS:
        raise ValueError(f'the number {text:.40} has more than 64 bits')
    return int(text)


def _finite_number(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f'the number {text:.40} is not finite')
    return float(text)


_SafeLoader: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """Refuses keys that are there twice, and numbers that are not finite."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Return the mapping of a node."""
        seen = set()
        for item, _ in node.value:
            is_merge = item.tag == 'tag:yaml.org,2002:merge'
            key = None if is_merge else self.construct_object(item, deep=True)
            if isinstance(key, str | int | float):
                if key in seen:
                    text = f'key "{key}" is there twice; leave one out'
                    raise _yaml_error(text, item)
                seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: Any) -> int:
        """Return the whole number of a node."""
        number: int = super().construct_yaml_int(node)
        if number not in _WHOLE_NUMBERS:
            raise _yaml_error(f'the number {node.value:.40} has more than 64 bits', node)
        return number

    def construct_yaml_float(self, node: Any) -> float:
        """Return the number of a node."""
        number: float = super().construct_yaml_float(node)
        if not math.isfinite(number):
            raise _yaml_error(f'the number {node.value:.40} is not finite', node)
        return number


_Loader.add_constructor('tag:yaml.org,2002:int', _Loader.construct_yaml_int)
_Loader.add_constructor('tag:yaml.org,2002:float', _Loader.construct_yaml_float)


def _yaml_error(text: str, node: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


def _check_yaml(text: str, source: Path | str) -> None:
    """Refuse depth, of which the parser would die, and aliases that multiply."""
    sizes: dict[str | None, int] = {}
    unfinished: list[tuple[str | None, int]] = []
    nodes = aliases = repeated = 0
    events: Any = yaml.parse(text, Loader=_Loader)
    for event in events:
        nodes += 1
        if isinstance(event, yaml.CollectionStartEvent):
            unfinished.append((event.anchor, nodes))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = unfinished.pop()
            sizes[anchor] = nodes - before
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor] = 1
            if '\0' in event.value:
                raise _yaml_error('a text holds the character NUL', event)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                problem = f'the alias "{event.anchor}" contains itself, or is undefined'
                raise _yaml_error(problem, event)
            aliases += 1
            repeated += sizes[event.anchor]
            nodes += sizes[event.anchor]
        line = f'{source}, line {event.start_mark.line + 1}:'
        if len(unfinished) > MAX_DEPTH:
            raise _deep(line)
        if aliases > MAX_ALIASES or repeated > MAX_REPEATED:
            raise limit_error(
                line, f'has more than {MAX_ALIASES} aliases, or they repeat too much'
            )


class _Elements(ElementTree.TreeBuilder):
    """Builds the elements of an XML file up to a depth."""

    def __init__(self, source: Path | str) -> None:
        super().__init__()
        self._source, self._depth = source, 0

    def start(self, tag: Any, attrs: Any) -> ElementTree.Element:
        """Begin an element."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _deep(self._source)
        return super().start(tag, attrs)

    def end(self, tag: Any) -> ElementTree.Element:
        """End an element."""
        self._depth -= 1
        return super().end(tag)
