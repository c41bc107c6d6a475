"""Message, service and action classes by the names that ROS writes them with."""

from __future__ import annotations

import importlib
from typing import Any

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
