"""A pickle interpreter that imports nothing and calls nothing.

It walks the opcodes (pickletools decodes their arguments) and knows only values, containers and a
table of constructors of its own; whatever is not in the table is refused by name. A meter counts
memory before it is taken, and time. Containers are only filled before the end: what they hold may
be shared, and larger than it looks.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from osmabench_ros.base.limits.meter import Meter
from osmabench_ros.errors import MapError, OsmabenchError, UnsafePickleError
from osmabench_ros.maps.untrusted.pickle_sharing import ITEM_BYTES, Compound, check_sharing

_LARGE_BYTES = 1 << 16
_MAX_LINE_BYTES = 1 << 26
_BLOCK_BYTES = 1 << 26
_STEPS = 1024
_KEYS_AT_ONCE = 1000
_ENTRY_BYTES = 100
"""What an entry of a dict takes, about, be it the memo's."""
_OBJECT_BYTES = 256
MAX_STATE_PARTS = 5
"""Length of the state of an array."""
_MAX_NUMBER_BITS = 256
_MAX_KEY_PARTS = 8
_MAX_SHOWN = 80
_HASH_MODULUS = 2**61 - 1
"""Python takes the hash of a number modulo this: any number of larger ones may have one hash."""
_DROPPED = object()
_FLOAT, _STOP = pickle.BINFLOAT, pickle.STOP
_unpack_float = struct.Struct('>d').unpack
_OPCODES: dict[bytes, Any] = {
    opcode.code.encode('latin-1'): opcode for opcode in pickletools.opcodes
}

_VALUES = frozenset({
    'INT', 'BININT', 'BININT1', 'BININT2', 'LONG', 'LONG1', 'LONG4', 'FLOAT', 'BINFLOAT',
    'STRING', 'BINSTRING', 'SHORT_BINSTRING', 'BINBYTES', 'SHORT_BINBYTES', 'BINBYTES8',
    'BYTEARRAY8', 'UNICODE', 'BINUNICODE', 'SHORT_BINUNICODE', 'BINUNICODE8',
})  # fmt: skip
_CONSTANTS = {'NONE': None, 'NEWTRUE': True, 'NEWFALSE': False}
_EMPTY: dict[str, Callable[[], Any]] = {
    'EMPTY_LIST': list, 'EMPTY_DICT': dict, 'EMPTY_TUPLE': tuple, 'EMPTY_SET': set,
}  # fmt: skip


class _Reader:
    """Input of the opcodes; never allocates more than the stream has and the meter allows."""

    def __init__(self, stream: IO[bytes], meter: Meter) -> None:
        self._stream, self._meter = stream, meter

    def read(self, size: int) -> bytes:
        """Read `size` bytes, or fewer if there are no more."""
        self._meter.take(max(size, 0))
        if size <= _BLOCK_BYTES:
            return self._stream.read(size)
        data = bytearray()
        while size > 0 and (block := self._stream.read(min(size, _BLOCK_BYTES))):
            data += block
            size -= len(block)
        return data  # type: ignore[return-value]

    def readline(self) -> bytes:
        """Read the text of an opcode of protocol 0."""
        line = self._stream.readline(_MAX_LINE_BYTES)
        self._meter.take(len(line))
        return line


class Pending(ABC, Compound):
    """A value that is complete only after its state was read (pickle's BUILD)."""

    @abstractmethod
    def built(self, state: Any) -> Any:
        """Return the finished value for the state in the pickle."""


@dataclass(frozen=True)
class Name:
    """A global name in a pickle; it is never imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f'{self.module}.{self.name}'


def shown(value: Any) -> str:
    """Return a short text for errors, without the content of a value."""
    if isinstance(value, Name):
        return str(value)[:_MAX_SHOWN]
    if isinstance(value, str | bytes):
        return repr(value[:_MAX_SHOWN])
    if value is None or isinstance(value, int | float):
        return repr(value)[:_MAX_SHOWN]
    return f'a {type(value).__name__}'


def check_key(key: Any) -> None:
    """Refuse keys whose hash is costly or may collide with many others: UnsafePickleError."""
    parts = key if type(key) is tuple and len(key) <= _MAX_KEY_PARTS else (key,)
    for part in parts:
        kind = type(part)
        if kind is int and abs(part) < _HASH_MODULUS:
            continue
        if part is not None and kind not in (str, bytes, float, bool):
            raise UnsafePickleError(f'has {shown(part)} as a key, which is not allowed')


Constructor = Callable[[tuple[Any, ...]], Any]
"""Makes a value from the arguments that a pickle gives to a name."""
Lookup = Callable[[Name], Constructor | None]
"""Returns the constructor of an allowed name, None for all others."""


def _refuse_reference(_reference: Any) -> NoReturn:
    raise UnsafePickleError('refers to data outside the pickle')


def is_large(value: Any) -> bool:
    """Return whether this is a large block of bytes or text, which a pickle may use only once."""
    return isinstance(value, bytes | bytearray | str) and len(value) > _LARGE_BYTES


def _kept(value: Any) -> Any:
    """Return the value to remember in the memo; none for large blocks, alone or in a state."""
    parts = value if type(value) is tuple and len(value) <= MAX_STATE_PARTS else (value,)
    return _DROPPED if any(is_large(part) for part in parts) else value


def _seen_again(value: Any) -> Any:
    if value is _DROPPED:
        raise MapError('refers twice to the same large block of bytes or text')
    return value


def fill(target: dict[Any, Any], keys: Sequence[Any], values: Sequence[Any], meter: Meter) -> None:
    """Put values under checked keys into a dict, in parts so that time limits are checked."""
    meter.take(_ENTRY_BYTES * len(keys))
    for key in keys:
        check_key(key)
    for first in range(0, len(keys), _KEYS_AT_ONCE):
        meter.check_time()
        part = slice(first, first + _KEYS_AT_ONCE)
        target.update(zip(keys[part], values[part], strict=True))


class PickleMachine:
    """Interprets one pickle, from the position of the stream to the last opcode."""

    def __init__(
        self,
        stream: IO[bytes],
        lookup: Lookup,
        meter: Meter,
        load_reference: Callable[[Any], Any] = _refuse_reference,
    ) -> None:
        self._reader: Any = _Reader(stream, meter)
        self._read = stream.read
        self._lookup, self._meter, self._load_reference = lookup, meter, load_reference
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._memo_keys: dict[int, list[int]] = {}
        self._operations = _operations()

    def load(self) -> Any:
        """Return the value; UnsafePickleError if it is refused, MapError if it is malformed."""
        try:
            value = self._run()
            check_sharing(value, self._meter)
        except OsmabenchError:
            raise
        except Exception as error:  # whatever hostile bytes provoke becomes one kind of error
            reason = f': {error}' if isinstance(error, ValueError | EOFError) else ''
            raise MapError(
                f'is cut off or malformed: {type(error).__name__}{reason[:_MAX_SHOWN]}'
            ) from error
        return value

    def _run(self) -> Any:
        while True:
            self._meter.take(ITEM_BYTES * _STEPS)
            self._meter.check_time()
            for _ in range(_STEPS):
                code = self._read(1)
                if code == _FLOAT:  # half of what maps consist of, hence this short way
                    self._stack.append(_unpack_float(self._read(8))[0])
                elif code == _STOP:
                    return self._pop()
                else:
                    opcode = _OPCODES[code]
                    argument = opcode.arg.reader(self._reader) if opcode.arg else None
                    self._step(opcode.name, argument)

    def _step(self, name: str, argument: Any) -> None:
        if name in _VALUES:
            self._stack.append(self._value(argument))
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self._meter.take(_OBJECT_BYTES)
            self._stack.append(_EMPTY[name]())
        elif name in self._operations:
            self._operations[name](self, argument)
        else:
            raise UnsafePickleError(f'uses opcode {name}, which is not allowed')

    def _value(self, argument: Any) -> Any:
        if type(argument) is int and argument.bit_length() > _MAX_NUMBER_BITS:
            raise MapError(f'holds a number of {argument.bit_length()} bits')
        if type(argument) is str:
            self._meter.take(sys.getsizeof(argument))
        return argument

    # Stack and memo

    def _pop(self) -> Any:
        if self._marks and len(self._stack) <= self._marks[-1]:
            raise MapError('is malformed: it takes more from the stack than there is')
        return self._stack.pop()

    def _pop_to_mark(self) -> list[Any]:
        mark = self._marks.pop()
        items = self._stack[mark:]
        del self._stack[mark:]
        return items

    def _mark(self, _argument: Any) -> None:
        self._marks.append(len(self._stack))

    def _pop_one(self, _argument: Any) -> None:
        if self._marks and self._marks[-1] == len(self._stack):
            self._marks.pop()
        else:
            self._stack.pop()

    def _duplicate(self, _argument: Any) -> None:
        self._stack.append(_seen_again(_kept(self._stack[-1])))

    def _put(self, key: int) -> None:
        """Remember the top of the stack; the bytes of arrays are freed once they are used."""
        self._meter.take(_ENTRY_BYTES)
        value = _kept(self._stack[-1])
        if isinstance(value, Pending):
            self._memo_keys.setdefault(id(value), []).append(key)
        self._memo[key] = value

    def _memoize(self, _argument: Any) -> None:
        self._put(len(self._memo))

    def _get(self, key: int) -> None:
        self._stack.append(_seen_again(self._memo[key]))

    # Containers

    def _list(self, _argument: Any) -> None:
        self._meter.take(_OBJECT_BYTES)
        self._stack.append(self._pop_to_mark())

    def _append(self, _argument: Any) -> None:
        item = self._pop()
        self._top(list).append(item)

    def _extend(self, _argument: Any) -> None:
        items = self._pop_to_mark()
        self._top(list).extend(items)

    def _tuple(self, _argument: Any) -> None:
        self._meter.take(_OBJECT_BYTES)
        self._stack.append(tuple(self._pop_to_mark()))

    def _tuple_of(self, count: int) -> None:
        self._meter.take(_OBJECT_BYTES)
        items = [self._pop() for _ in range(count)]
        self._stack.append(tuple(reversed(items)))

    def _dict(self, _argument: Any) -> None:
        self._meter.take(_OBJECT_BYTES)
        items, made = self._pop_to_mark(), dict[Any, Any]()
        fill(made, items[::2], items[1::2], self._meter)
        self._stack.append(made)

    def _set_item(self, _argument: Any) -> None:
        value, key = self._pop(), self._pop()
        fill(self._top(dict), [key], [value], self._meter)

    def _set_items(self, _argument: Any) -> None:
        items = self._pop_to_mark()
        fill(self._top(dict), items[::2], items[1::2], self._meter)

    def _add_items(self, _argument: Any) -> None:
        items = self._pop_to_mark()
        self._top(set).update(self._distinct(items))

    def _frozen_set(self, _argument: Any) -> None:
        self._meter.take(_OBJECT_BYTES)
        self._stack.append(frozenset(self._distinct(self._pop_to_mark())))

    def _distinct(self, items: list[Any]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        fill(made, items, items, self._meter)
        return made

    def _top(self, kind: type) -> Any:
        top = self._stack[-1]
        if type(top) is not kind:
            raise UnsafePickleError(
                f'fills a {type(top).__name__} as if it were a {kind.__name__}'
            )
        return top

    # Names and what is made from them

    def _name(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise MapError('is malformed: a name is no text')
        found = Name(module, name)
        if self._lookup(found) is None:
            raise UnsafePickleError(
                f'asks for {shown(found)}, which is not allowed; nothing was run'
            )
        self._stack.append(found)

    def _global(self, argument: str) -> None:
        module, _, name = argument.partition(' ')
        self._name(module, name)

    def _stack_global(self, _argument: Any) -> None:
        name, module = self._pop(), self._pop()
        self._name(module, name)

    def _construct(self, target: Any, arguments: Any) -> None:
        constructor = self._lookup(target) if isinstance(target, Name) else None
        if constructor is None or not isinstance(arguments, tuple):
            raise UnsafePickleError(
                f'calls {shown(target)}, which is not allowed; nothing was run'
            )
        self._meter.take(_OBJECT_BYTES)
        self._stack.append(constructor(arguments))

    def _reduce(self, _argument: Any) -> None:
        arguments, target = self._pop(), self._pop()
        self._construct(target, arguments)

    def _new_with_keywords(self, _argument: Any) -> None:
        keywords, arguments, target = self._pop(), self._pop(), self._pop()
        if keywords:
            raise UnsafePickleError(f'calls {shown(target)} with keywords, which is not allowed')
        self._construct(target, arguments)

    def _instance(self, argument: str) -> None:
        arguments = tuple(self._pop_to_mark())
        self._global(argument)
        self._construct(self._pop(), arguments)

    def _object(self, _argument: Any) -> None:
        target, *arguments = self._pop_to_mark()
        self._construct(target, tuple(arguments))

    def _build(self, _argument: Any) -> None:
        state, pending = self._pop(), self._pop()
        if not isinstance(pending, Pending):
            raise UnsafePickleError(f'sets the state of a {type(pending).__name__}')
        value = pending.built(state)
        for key in self._memo_keys.pop(id(pending), ()):
            self._memo[key] = value
            if isinstance(value, Pending):
                self._memo_keys.setdefault(id(value), []).append(key)
        self._stack.append(value)

    def _reference(self, argument: str) -> None:
        self._stack.append(self._load_reference(argument))

    def _binary_reference(self, _argument: Any) -> None:
        self._stack.append(self._load_reference(self._pop()))


def _operations() -> Mapping[str, Callable[[PickleMachine, Any], None]]:
    machine: Any = PickleMachine
    return {
        'PROTO': lambda *_: None, 'FRAME': lambda *_: None, 'MARK': machine._mark,
        'POP': machine._pop_one, 'POP_MARK': lambda self, _: self._pop_to_mark(),
        'DUP': machine._duplicate,
        'PUT': machine._put, 'BINPUT': machine._put, 'LONG_BINPUT': machine._put,
        'MEMOIZE': machine._memoize,
        'GET': machine._get, 'BINGET': machine._get, 'LONG_BINGET': machine._get,
        'LIST': machine._list, 'APPEND': machine._append, 'APPENDS': machine._extend,
        'TUPLE': machine._tuple, 'TUPLE1': lambda self, _: self._tuple_of(1),
        'TUPLE2': lambda self, _: self._tuple_of(2), 'TUPLE3': lambda self, _: self._tuple_of(3),
        'DICT': machine._dict, 'SETITEM': machine._set_item, 'SETITEMS': machine._set_items,
        'ADDITEMS': machine._add_items, 'FROZENSET': machine._frozen_set,
        'GLOBAL': machine._global, 'STACK_GLOBAL': machine._stack_global,
        'REDUCE': machine._reduce, 'NEWOBJ': machine._reduce,
        'NEWOBJ_EX': machine._new_with_keywords, 'INST': machine._instance,
        'OBJ': machine._object, 'BUILD': machine._build,
        'PERSID': machine._reference, 'BINPERSID': machine._binary_reference,
    }  # fmt: skip
