"""Parameters of tests that are too many for `make test`."""

import pytest


def few(values, *kept):
    """Return parameters, all but those that are kept for `make test` marked as `full`."""

    def marked(value):
        arguments = value if isinstance(value, tuple) else (value,)
        return pytest.param(*arguments, marks=pytest.mark.full)

    return [value if value in kept else marked(value) for value in values]
