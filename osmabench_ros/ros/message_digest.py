"""A digest of the content of a message without its stamps."""

from __future__ import annotations

import hashlib
from typing import Any

_TIME = 'builtin_interfaces/Time'


def content_digest(message: Any) -> bytes:
    """Return a digest of all fields but times: the same map published again has the same."""
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, message)
    return digest.digest()


def _feed(digest: Any, value: Any) -> None:
    if hasattr(value, 'get_fields_and_field_types'):
        for name, kind in value.get_fields_and_field_types().items():
            if kind != _TIME:
                _feed(digest, getattr(value, name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            _feed(digest, item)
    else:
        # Arrays of numbers, and with them nearly all bytes of a map, are buffers.
        digest.update(value if hasattr(value, 'itemsize') else repr(value).encode())
