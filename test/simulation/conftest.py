from contextlib import ExitStack, closing

import pytest


@pytest.fixture
def closes():
    """Return a function that returns its argument, which is closed after the test."""
    with ExitStack() as stack:
        yield lambda opened: stack.enter_context(closing(opened))
