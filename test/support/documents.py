"""Changes of documents."""

from functools import reduce
from operator import getitem


def put(document, *place, value):
    """Put a value at a place of nested lists and dictionaries, given by its keys."""
    *way, last = place
    reduce(getitem, way, document)[last] = value
