"""Scripts of benchmarks/ as modules; that folder on sys.path would hide test/metrics."""

import importlib.util
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / 'benchmarks'


def benchmark_script(name):
    """Load a script by its path, once."""
    module_name = f'benchmark_script_{name}'
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, BENCHMARKS / f'{name}.py')
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        spec.loader.exec_module(module)
    return sys.modules[module_name]
