"""The one boundary behind which a reply is no longer a stranger's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from osmabench_ros.errors import OsmabenchError
from osmabench_ros.language.excerpt import excerpt
from osmabench_ros.language.model import TransientModelError


@contextmanager
def malformed_replies(name: str, host: str) -> Iterator[None]:
    """Turn whatever a reply makes our code or a library raise into a bad reply of one request."""
    try:
        yield
    except OsmabenchError:
        raise
    except Exception as error:
        what = excerpt(f'{type(error).__name__}: {error}')
        raise TransientModelError(
            f'{name} sent a malformed reply: {what}', reason=f'malformed replies from {host}'
        ) from None


def cut_off(name: str) -> TransientModelError:
    """Return the error of a reply that did not end."""
    what = 'cut off at the longest reply allowed'
    return TransientModelError(f'{name} was {what}', reason=f'replies {what}')
