"""The one reader of YAML, JSON and XML: of limited size, depth and repetition."""

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import yaml
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring
from pydantic_core import from_json

from osmabench_ros.base.fence import limit_error, limit_factor
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import OsmabenchError, errors_as

MAX_DEPTH = 64
MAX_ALIASES = 1000
# Values of a YAML file that aliases may repeat.
MAX_REPEATED = 100_000

_MAX_MIB = 256
_GZIP_MAGIC = b'\x1f\x8b'
_MERGE = 'tag:yaml.org,2002:merge'
_NUMBERS = ('tag:yaml.org,2002:int', 'tag:yaml.org,2002:float')
# Characters of a number in YAML: base 60 takes quadratic time, and Python prints no huge integer.
_MAX_NUMBER = 300


def document_limit() -> int:
    """Return the size (bytes) up to which texts are read."""
    return int(limit_factor() * _MAX_MIB * 2**20)


def read_text(path: Path | str, error: type[OsmabenchError]) -> str:
    """Read an untrusted text file: UTF-8, without NUL, within the size limit of documents."""
    return _decode(read_bytes(path, error, document_limit()), path, error)


def read_yaml(path: Path | str, error: type[OsmabenchError]) -> Any:
    """Read an untrusted YAML file; see `parse_yaml`."""
    return parse_yaml(read_bytes(path, error, document_limit()), path, error)


def read_json(path: Path | str, error: type[OsmabenchError]) -> Any:
    """Read an untrusted JSON file; see `parse_json`. Control characters are refused as in YAML."""
    data = read_bytes(path, error, document_limit())
    check_characters(data, path, error)
    return parse_json(data, path, error)


# An escaped control character, other than a tab or an end of line; JSON takes no bare one.
_CONTROL = re.compile(rb'(?<!\\)(?:\\\\)*\\u00(?:0[0-8bce-f]|1[0-9a-f]|7f|[89][0-9a-f])', re.I)


def check_characters(data: bytes, path: Path | str, error: type[OsmabenchError]) -> None:
    """Raise `error` if a JSON text has a control character, which a terminal might obey."""
    # Looking for the prefix first takes a tenth of the time.
    found = _CONTROL.search(data) if rb'\u00' in data else None
    if found is not None:
        code = found[0].rpartition(b'\\')[2].decode()
        raise error(f'{path} holds the control character \\{code}; remove it')


def read_xml(path: Path | str, error: type[OsmabenchError]) -> Element:
    """Read the root element of an XML file; raises `error`, or LimitError if too large."""
    try:
        root: Element = fromstring(read_bytes(path, error, document_limit()), forbid_dtd=True)
    except DefusedXmlException as fault:
        what = 'declares a document type, where XML entities are defined'
        raise error(f'{path} {what}; remove it') from fault
    except (ParseError, ValueError, LookupError) as fault:  # also of encodings
        raise error(f'{path} is not valid XML: {fault}') from fault
    return root


def read_unpacked(path: Path, error: type[OsmabenchError]) -> str:
    """Read a UTF-8 text, maybe gzip; raises `error` if it is damaged, LimitError if too large."""
    data = read_bytes(path, error, document_limit())
    if data.startswith(_GZIP_MAGIC):
        faults = (EOFError, zlib.error, gzip.BadGzipFile)
        with errors_as(error, f'{path} is damaged', faults, remedy='copy it again'):
            data = gzip.GzipFile(fileobj=io.BytesIO(data)).read(document_limit() + 1)
        if len(data) > document_limit():
            raise limit_error(path, f'unpacks to more than {document_limit()} bytes')
    return _decode(data, path, error)


def number_lines(text: str, source: Path) -> Iterator[tuple[str, str]]:
    """Yield source and number of each line that is not blank, and the line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield f'{source}:{number}', line


def parse_json(text: str | bytes, source: Path | str, error: type[OsmabenchError]) -> Any:
    """Return the content of a JSON text; raises `error`, which names `source`, or LimitError."""
    with errors_as(error, f'{source} is not JSON', ValueError):
        return from_json(_decode(text, source, error), allow_inf_nan=False)


def parse_yaml(text: str | bytes, source: Path | str, error: type[OsmabenchError]) -> Any:
    """Return the content of a YAML text; raises as `parse_json`, also for bad aliases."""
    decoded = _decode(text, source, error)
    try:
        _check_yaml(decoded, source)
        return yaml.load(decoded, _Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        place = f', line {mark.line + 1}, column {mark.column + 1}' if mark else ''
        is_content = isinstance(fault, yaml.constructor.ConstructorError)
        reason = fault.problem if is_content else f'is not YAML: {fault.problem}'
        raise error(f'{source}{place}: {reason}') from fault
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError) as fault:
        # Conversions of values, such as dates, raise most of these.
        text = ' '.join(str(fault).split())
        raise error(f'{source}: holds a malformed value: {text}') from fault


def parse_mapping(
    text: str | bytes, source: Path | str, error: type[OsmabenchError]
) -> dict[str, Any]:
    """Return the mapping in a YAML text, an empty one if it is empty; raises as `parse_yaml`."""
    data = parse_yaml(text, source, error)
    data = {} if data is None else data
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise error(f'{source} must be a YAML mapping of names, such as {{voxel_m: 0.05}}')
    return data


def _decode(content: str | bytes, source: Path | str, error: type[OsmabenchError]) -> str:
    """Return a document as text, if it is one and is not too large."""
    if len(content) > document_limit():
        raise limit_error(source, f'has {len(content)} bytes')
    with errors_as(error, f'{source} is not UTF-8 text', UnicodeError, remedy='save it as UTF-8'):
        text = content if isinstance(content, str) else content.decode('utf-8-sig')
        text.encode()  # half of a surrogate pair is not a character
    if '\0' in text:
        raise error(f'{source} holds the character NUL; is it text, and UTF-8?')
    return text.removeprefix('\ufeff')


_SafeLoader: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """Refuses keys that are there twice, and very long numbers."""

    def construct_scalar(self, node: Any) -> Any:
        """Return the text of a node."""
        if node.tag in _NUMBERS and len(node.value) > _MAX_NUMBER:
            raise _yaml_error(f'a number has more than {_MAX_NUMBER} characters; shorten it', node)
        return super().construct_scalar(node)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Return the mapping of a node."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if (key.tag, key.value) in seen:
                    raise _yaml_error(f'key "{key.value}" is there twice; leave one out', key)
                seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


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
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                problem = f'the alias "{event.anchor}" contains itself, or is undefined'
                raise _yaml_error(problem, event)
            aliases += 1
            repeated += sizes[event.anchor]
            nodes += sizes[event.anchor]
        if len(unfinished) > MAX_DEPTH:
            raise limit_error(source, f'is nested deeper than {MAX_DEPTH} levels')
        if aliases > MAX_ALIASES or repeated > MAX_REPEATED:
            what = f'has more than {MAX_ALIASES} aliases, or they repeat too much'
            raise limit_error(source, what)
