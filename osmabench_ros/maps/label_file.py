"""Names of class ids, written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.documents import read_yaml
from osmabench_ros.errors import ConfigError
from osmabench_ros.semantics.labels import LabelClass, LabelSet, normalised_name

_FORMS = """expected "7: chair" lines, or "classes:" with "id" and "name" each"""


def read_label_file(path: Path) -> LabelSet:
    """Read a label set from YAML or JSON.

    Parameters
    ----------
    path : Path
        Either names by id, ``7: chair``, or ``classes: [{id: 7, name: chair, structure: false}]``
        as `osmabench map import` takes it.

    Raises
    ------
    ConfigError
        If the file is missing or malformed, or an id or name repeats.
    """
    data = read_yaml(path, ConfigError)
    try:
        classes = _classes(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f'label file {path}: {error!r}; {_FORMS}') from error
    return LabelSet(path.stem, tuple(sorted(classes, key=lambda item: item.id)))


def _classes(data: Any) -> list[LabelClass]:
    if 'classes' in data:
        return [
            LabelClass(
                int(item['id']),
                normalised_name(str(item['name'])),
                bool(item.get('structure', False)),
            )
            for item in data['classes']
        ]
    return [LabelClass(int(key), normalised_name(str(name))) for key, name in data.items()]
