"""Figures of suites by name."""


def figures(suite, context, *parts, applicable=False):
    """Return the records of a suite by mode, metric and class, or by the parts that are named."""
    parts = parts or ('mode', 'metric', 'class_name')
    records = suite.evaluate(context)
    found = {tuple(getattr(item, part) for part in parts): item for item in records}
    assert len(found) == len(records), 'a figure is there twice'
    return {key: item for key, item in found.items() if item.applicable or not applicable}


def figure_of(records, metric, class_name='', **parts):
    """Return the value of the only record of a metric and a class, and of other parts."""
    wanted = {'metric': metric, 'class_name': class_name, **parts}
    [found] = [item for item in records if wanted.items() <= vars(item).items()]
    return found.value


def assert_values(found, class_name='', **expected):
    """Compare values of records by metric and class, of one class or of all."""
    assert {name: found[name, class_name].value for name in expected} == expected
