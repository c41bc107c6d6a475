"""Figures of suites by name."""


def figures(suite, context, *parts, applicable=False):
    """Return the records of a suite by mode, metric and class, or by the parts that are named."""
    parts = parts or ('mode', 'metric', 'class_name')
    records = suite.evaluate(context)
    found = {tuple(getattr(item, part) for part in parts): item for item in records}
    assert len(found) == len(records), 'a figure is there twice'
    return {key: item for key, item in found.items() if item.applicable or not applicable}
