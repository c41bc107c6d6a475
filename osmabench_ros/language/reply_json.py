"""JSON of servers and of kept replies."""

from __future__ import annotations

from typing import Any

from osmabench_ros.base.limits.documents import parse_json
from osmabench_ros.errors import LanguageModelError, OsmabenchError


def json_object(content: bytes) -> dict[str, Any]:
    """Return the object that a reply holds; ValueError if it is none that `parse_json` takes."""
    try:
        data = parse_json(content, 'the reply', LanguageModelError)
    except OsmabenchError as error:
        raise ValueError(str(error)) from None
    if not isinstance(data, dict):
        raise ValueError('the reply is no JSON object')
    return data
