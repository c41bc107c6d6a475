"""Scripts of benchmarks/ as modules; that folder on sys.path would hide test/metrics."""

import importlib.util
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / 'benchmarks'


def load_script(path):
    """Load a script as a module by its path, once."""
    name = f'script_{path.parent.name}_{path.stem}'
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def benchmark_script(name):
    """Load a script of benchmarks/."""
    return load_script(BENCHMARKS / f'{name}.py')
