"""Class names that can be searched for."""

import ast
from collections import Counter
from pathlib import Path

import osmabench_ros

PACKAGE = Path(osmabench_ros.__file__).parent


def test_no_public_class_has_the_name_of_another() -> None:
    names = Counter(
        item.name
        for file in PACKAGE.rglob('*.py')
        for item in ast.parse(file.read_text(encoding='utf-8')).body
        if isinstance(item, ast.ClassDef) and not item.name.startswith('_')
    )
    assert [name for name, count in names.items() if count > 1] == []
