"""Message, service and action classes by the names that ROS writes them with."""

from __future__ import annotations

import importlib
from typing import Any

PARTS = 3


def interface_class(name: str) -> type[Any] | None:
    """Return the class of an interface.

    Parameters
    ----------
    name : str
        Such as ``'sensor_msgs/msg/PointCloud2'`` or ``'std_srvs/srv/Empty'``.

    Returns
    -------
    type or None
        None if the package is not installed, or has no such interface.
    """
    parts = name.split('/')
    if len(parts) != PARTS or not all(part.isidentifier() for part in parts):
        return None
    try:
        module = importlib.import_module(f'{parts[0]}.{parts[1]}')
    except ImportError:
        return None
    found = getattr(module, parts[2], None)
    return found if isinstance(found, type) else None
