"""Builds a YAML text from events, without recursion, and counts what aliases repeat."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

import yaml

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.documents import WHOLE_NUMBERS, shown_number
from osmabench_ros.base.limits.reading import shown
from osmabench_ros.errors import OsmabenchError

_LOADER: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_TAG = 'tag:yaml.org,2002:'
_TEXT, _MERGE, _NULL = f'{_TAG}str', f'{_TAG}merge', f'{_TAG}null'
_NUMBERS = (f'{_TAG}int', f'{_TAG}float')
_SCALARS = {f'{_TAG}{kind}' for kind in ('bool', 'timestamp', 'binary')} | {_NULL, *_NUMBERS}
_LISTS, _MAPPINGS = (None, '!', f'{_TAG}seq'), (None, '!', f'{_TAG}map')
_UNPRINTABLE = re.compile(
    '[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]'
)
_UNUSABLE = re.compile('[\0\ud800-\udfff]')
_LONGEST_NUMBER = 100
_LARGEST_KEY = 2**53
_BYTES_PER_NODE = 512
_EVENTS_PER_LOOK = 4096


@dataclass
class _Open:
    """A list or mapping that is being read; `count` is its nodes including repeated ones."""

    value: Any
    anchor: str | None
    count: int = 1
    key: Any = None
    has_key: bool = False
    merged: list[dict[Any, Any]] = field(default_factory=list)


class _Merge:
    """Key ``<<``, whose value is merged into the mapping."""


class YamlReader:
    """Reads one YAML document; raises `error`, naming `where`, if it is malformed."""

    def __init__(self, text: str, where: str, error: type[OsmabenchError]) -> None:
        self._text, self._where, self._error = text, where, error
        self._allowance = allowance()
        self._most_nodes = self._allowance.memory_bytes(len(text)) // _BYTES_PER_NODE
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._content: Any = None
        self._plain: dict[str, Any] = {}

    def content(self) -> Any:
        """Return the content of the document, None if it is empty."""
        if odd := _UNPRINTABLE.search(self._text):
            line = self._text.count('\n', 0, odd.start()) + 1
            raise self._error(
                f'{self._where}, line {line}: holds the character {odd[0]!a}, which YAML '
                'does not know; is it a text file?'
            )
        loader = _LOADER(self._text)
        try:
            self._read(loader)
        except yaml.YAMLError as fault:
            mark = getattr(fault, 'problem_mark', None) or getattr(fault, 'context_mark', None)
            text = getattr(fault, 'problem', None) or ' '.join(str(fault).split())
            raise self._error(f'{self._place(mark)}: is not YAML: {text}') from fault
        finally:
            loader.dispose()
        return self._content

    def _read(self, loader: Any) -> None:
        end = time.process_time() + self._allowance.time_s(len(self._text))
        documents = events = 0
        while (event := loader.get_event()) is not None:
            events += 1
            if events % _EVENTS_PER_LOOK == 0 and time.process_time() > end:
                raise exceeded(self._where, 'takes too long to read', 'seconds')
            kind = type(event)
            if kind is yaml.ScalarEvent:
                value = self._scalar(loader, event)
                self._remember(event.anchor, value, 1)
                self._add(value, 1, event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._begin(event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._end(event)
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise self._fault(event, 'a second document begins; give one')

    def _begin(self, event: Any) -> None:
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if event.tag not in (_LISTS if is_list else _MAPPINGS):
            raise self._unknown_tag(event)
        if len(self._open) >= self._allowance.depth:
            text = f'is nested deeper than {self._allowance.depth} levels'
            raise exceeded(self._place(event.start_mark), text, 'depth')
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Open([] if is_list else {}, event.anchor))

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        for base in done.merged:  # the first has priority
            done.value = {**base, **done.value}
        self._remember(done.anchor, done.value, done.count)
        self._add(done.value, done.count, event)

    def _remember(self, anchor: str | None, value: Any, count: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, count)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise self._fault(event, f'no anchor "{shown(event.anchor)}" comes before this alias')
        known = self._anchors[event.anchor]
        if known is None:
            raise self._fault(event, f'the alias "{shown(event.anchor)}" contains itself')
        self._add(*known, event)

    def _add(self, value: Any, count: int, event: Any) -> None:
        """Add a value at the current place in the document."""
        if not self._open:
            self._content = '<<' if value is _Merge else value
            return
        parent = self._open[-1]
        parent.count += count
        if parent.count > self._most_nodes:
            text = f'has aliases that repeat more than {self._most_nodes} values'
            raise exceeded(self._place(event.start_mark), text, 'memory_mib')
        if type(parent.value) is list:
            parent.value.append('<<' if value is _Merge else value)
        elif not parent.has_key:
            parent.key, parent.has_key = self._key(value, parent.value, event), True
        else:
            parent.has_key = False
            if parent.key is _Merge:
                parent.merged += self._bases(value, event)
            else:
                parent.value[parent.key] = '<<' if value is _Merge else value

    def _key(self, key: Any, mapping: dict[Any, Any], event: Any) -> Any:
        if key is _Merge:
            if self._open[-1].merged:
                raise self._fault(event, 'key "<<" is there twice; make it a list')
            return key
        # Lists cannot be keys, and large or broken numbers can be chosen so that all collide.
        plain = key is None or type(key) in (str, bool)
        if not plain and not (type(key) is int and abs(key) < _LARGEST_KEY):
            raise self._fault(event, 'a key must be a text or a whole number of 53 bits')
        if key in mapping:
            raise self._fault(event, f'key "{shown(str(key))}" is there twice; leave one out')
        return key

    def _bases(self, value: Any, event: Any) -> list[dict[Any, Any]]:
        bases = value if isinstance(value, list) else [value]
        if not all(isinstance(item, dict) for item in bases):
            raise self._fault(event, '"<<" needs a mapping, or a list of them')
        return bases

    def _scalar(self, loader: Any, event: Any) -> Any:
        tag, value = event.tag, event.value
        if tag is None or tag == '!':
            if not event.implicit[0]:
                tag = _TEXT
            else:
                tag = loader.resolve(yaml.ScalarNode, value, event.implicit)
        if tag == _TEXT:
            if event.style == '"' and _UNUSABLE.search(value):
                raise self._fault(event, 'a text holds a character that cannot be encoded, or NUL')
            return value
        if tag == _MERGE:
            return _Merge
        if tag not in _SCALARS:
            raise self._unknown_tag(event)
        return self._constructed(tag, event)

    def _constructed(self, tag: str, event: Any) -> Any:
        value = event.value
        if tag in _NUMBERS and len(value) > _LONGEST_NUMBER:
            raise self._fault(event, f'the number {shown_number(value)} is too long')
        node = yaml.ScalarNode(tag, value, event.start_mark, event.end_mark)
        try:
            made = yaml.constructor.SafeConstructor().construct_object(node)
        except Exception as fault:  # constructors raise whatever conversions raise
            raise self._fault(event, f'"{shown(value)}" is no {tag.removeprefix(_TAG)}') from fault
        is_int = type(made) is int
        if (is_int and made not in WHOLE_NUMBERS) or (
            type(made) is float and not abs(made) < float('inf')
        ):
            what = 'has more than 64 bits' if is_int else 'is not finite'
            raise self._fault(event, f'the number {shown_number(value)} {what}')
        return made

    def _unknown_tag(self, event: Any) -> OsmabenchError:
        return self._fault(event, f'the tag "{shown(event.tag)}" is not read; leave it out')

    def _fault(self, event: Any, text: str) -> OsmabenchError:
        return self._error(f'{self._place(event.start_mark)}: {text}')

    def _place(self, mark: Any) -> str:
        if mark is None:
            return self._where
        return f'{self._where}, line {mark.line + 1}, column {mark.column + 1}'
