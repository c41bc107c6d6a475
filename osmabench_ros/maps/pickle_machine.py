"""A pickle interpreter that imports and calls nothing.

Python's own unpickler resolves names to live classes and calls them. This one walks the opcodes
(pickletools decodes their arguments) and knows only values, containers and a table of
constructors of its own, given by name. Whatever is not in the table is refused by name.
"""

from __future__ import annotations

import pickle
import pickletools
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, NoReturn

from osmabench_ros.errors import MapError, UnsafePickleError

_LARGE_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 26
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
    """What opcodes read from: never allocates more than the stream gives."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._read = stream.read
        self.readline = stream.readline

    def read(self, size: int) -> bytes:
        """Read `size` bytes, or fewer if there are no more."""
        if size <= _BLOCK_BYTES:
            return self._read(size)
        blocks = []
        while size > 0 and (block := self._read(min(size, _BLOCK_BYTES))):
            blocks.append(block)
            size -= len(block)
        return b''.join(blocks)


class Pending(ABC):
    """A value that is complete only after its state has come (pickle's BUILD)."""

    @abstractmethod
    def built(self, state: Any) -> Any:
        """Return the finished value for the state that the pickle holds."""


@dataclass(frozen=True)
class Name:
    """A name a pickle refers to; it is never imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f'{self.module}.{self.name}'


Constructor = Callable[[tuple[Any, ...]], Any]
"""Makes a value from the arguments that a pickle gives to a name."""
Lookup = Callable[[Name], Constructor | None]
"""Returns the constructor of an allowed name, None for all others."""


def _refuse_reference(_reference: Any) -> NoReturn:
    raise UnsafePickleError('refers to data outside the pickle')


class PickleMachine:
    """Interprets one pickle.

    Parameters
    ----------
    stream : binary file
        Positioned at the first opcode; afterwards behind the last one.
    lookup : callable
        Constructors of the allowed names.
    load_reference : callable
        Resolves persistent ids; the default refuses them.
    """

    def __init__(
        self,
        stream: IO[bytes],
        lookup: Lookup,
        load_reference: Callable[[Any], Any] = _refuse_reference,
    ) -> None:
        self._reader: Any = _Reader(stream)
        self._lookup = lookup
        self._load_reference = load_reference
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._memo_keys: dict[int, list[int]] = {}
        self._operations = _operations()

    def load(self) -> Any:
        """Return the value of the pickle.

        Raises
        ------
        UnsafePickleError
            If it asks for a name outside the table.
        MapError
            If it is cut off or malformed.
        """
        try:
            while True:
                code = self._reader.read(1)
                if code == _FLOAT:  # half of what maps consist of, hence this short way
                    self._stack.append(_unpack_float(self._reader.read(8))[0])
                elif code == _STOP:
                    return self._pop()
                else:
                    opcode = _OPCODES[code]
                    argument = opcode.arg.reader(self._reader) if opcode.arg else None
                    self._step(opcode.name, argument)
        except MapError:
            raise
        except Exception as error:  # whatever hostile bytes provoke becomes one kind of error
            raise MapError(f'is cut off or malformed: {type(error).__name__}: {error}') from error

    def _step(self, name: str, argument: Any) -> None:
        if name in _VALUES:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self._stack.append(_EMPTY[name]())
        elif name in self._operations:
            self._operations[name](self, argument)
        else:
            raise UnsafePickleError(f'uses opcode {name}, which is not allowed')

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
        self._stack.append(self._stack[-1])

    def _put(self, key: int) -> None:
        """Remember the top of the stack; the bytes of arrays are let go once they are used."""
        value = self._stack[-1]
        if isinstance(value, bytes | bytearray | str) and len(value) > _LARGE_BYTES:
            value = _DROPPED
        elif isinstance(value, Pending):
            self._memo_keys.setdefault(id(value), []).append(key)
        self._memo[key] = value

    def _memoize(self, _argument: Any) -> None:
        self._put(len(self._memo))

    def _get(self, key: int) -> None:
        value = self._memo[key]
        if value is _DROPPED:
            raise MapError('refers twice to the same large block of bytes or text')
        self._stack.append(value)

    # Containers

    def _list(self, _argument: Any) -> None:
        self._stack.append(self._pop_to_mark())

    def _append(self, _argument: Any) -> None:
        item = self._pop()
        self._top(list).append(item)

    def _extend(self, _argument: Any) -> None:
        items = self._pop_to_mark()
        self._top(list).extend(items)

    def _tuple(self, _argument: Any) -> None:
        self._stack.append(tuple(self._pop_to_mark()))

    def _tuple_of(self, count: int) -> None:
        items = [self._pop() for _ in range(count)]
        self._stack.append(tuple(reversed(items)))

    def _dict(self, _argument: Any) -> None:
        items = self._pop_to_mark()
        self._stack.append(dict(zip(items[::2], items[1::2], strict=True)))

    def _set_item(self, _argument: Any) -> None:
        value, key = self._pop(), self._pop()
        self._top(dict)[key] = value

    def _set_items(self, _argument: Any) -> None:
        items = self._pop_to_mark()
        self._top(dict).update(zip(items[::2], items[1::2], strict=True))

    def _add_items(self, _argument: Any) -> None:
        items = self._pop_to_mark()
        self._top(set).update(items)

    def _frozen_set(self, _argument: Any) -> None:
        self._stack.append(frozenset(self._pop_to_mark()))

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
            raise UnsafePickleError(f'asks for {found}, which is not allowed; nothing was run')
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
            raise UnsafePickleError(f'calls {target}, which is not allowed; nothing was run')
        self._stack.append(constructor(arguments))

    def _reduce(self, _argument: Any) -> None:
        arguments, target = self._pop(), self._pop()
        self._construct(target, arguments)

    def _new_with_keywords(self, _argument: Any) -> None:
        keywords, arguments, target = self._pop(), self._pop(), self._pop()
        if keywords:
            raise UnsafePickleError(f'calls {target} with keywords, which is not allowed')
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

    def _nothing(self, _argument: Any) -> None:
        """Pass over protocol numbers and frames."""


def _operations() -> Mapping[str, Callable[[PickleMachine, Any], None]]:
    machine: Any = PickleMachine
    return {
        'PROTO': machine._nothing, 'FRAME': machine._nothing, 'MARK': machine._mark,
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
