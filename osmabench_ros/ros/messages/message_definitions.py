"""Full text and hash of a message type, as bags embed them."""

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from osmabench_ros.errors import ContractError, OsmabenchError

PARTS = 3


def is_interface_name(name: str) -> bool:
    """Return whether a name is of the form ``package/msg/Name``."""
    parts = name.split('/')
    return len(parts) == PARTS and all(part.isidentifier() for part in parts)


def interface_class(name: str) -> type[Any] | None:
    """Return the class of an interface such as ``'std_srvs/srv/Empty'``, None without it."""
    if not is_interface_name(name):
        return None
    package, kind, interface = name.split('/')
    try:
        module = importlib.import_module(f'{package}.{kind}')
    except ImportError:
        return None
    found = getattr(module, interface, None)
    return found if isinstance(found, type) else None


SEPARATOR = '=' * 80
_NESTED = re.compile(r'(\w+)/(?:msg/)?(\w+)')


def message_class(name: str, error: type[OsmabenchError] = ContractError) -> type[Any]:
    """Return the Python class of a message type; raises an error if it is not installed."""
    found = interface_class(name)
    if found is None:
        remedy = f'install, build or source package {name.partition("/")[0]}'
        raise error(f'message type {name} is not installed; {remedy}')
    return found


def definition_of(name: str) -> str:
    """Return the definition of a type and of all it nests; ContractError if not installed."""
    order, texts = [name], {name: ''}
    for kind in order:
        fields = message_class(kind).get_fields_and_field_types()
        texts[kind] = _read_installed(kind, '.msg')
        if not texts[kind]:
            raise ContractError(f'the definition of {kind} is not installed; build its package')
        for field_type in fields.values():
            for package, nested in _NESTED.findall(field_type):
                full = f'{package}/msg/{nested}'
                if full not in texts:
                    texts[full] = ''
                    order.append(full)
    parts = [texts[name].rstrip('\n') + '\n']
    for kind in order[1:]:
        package, nested = kind.split('/msg/')
        parts.append(f'{SEPARATOR}\nMSG: {package}/{nested}\n{texts[kind].rstrip()}\n')
    return ''.join(parts)


def hash_of(name: str) -> str:
    """Return the hash of a type, ``RIHS01_…``; empty before Iron, which has none."""
    text = _read_installed(name, '.json')
    if not text:
        return ''
    try:
        entries = json.loads(text)['type_hashes']
        return str(next(item['hash_string'] for item in entries if item['type_name'] == name))
    except (json.JSONDecodeError, KeyError, TypeError, StopIteration):
        return ''


def has_header(name: str) -> bool:
    """Return whether messages of a type begin with a header."""
    fields = message_class(name).get_fields_and_field_types()
    return next(iter(fields.values()), '') == 'std_msgs/Header'


def _read_installed(name: str, suffix: str) -> str:
    """Return a file of the package's share folder, empty if there is none."""
    package, kind = name.split('/msg/')
    module = sys.modules.get(f'{package}.msg') or importlib.import_module(f'{package}.msg')
    if module.__file__ is None:
        return ''
    for folder in Path(module.__file__).resolve().parents:
        file = folder / 'share' / package / 'msg' / f'{kind}{suffix}'
        if file.is_file():
            return file.read_text()
    return ''
