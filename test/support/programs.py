"""Programs that tests run to their end."""

import os
import subprocess
import sys
from typing import Any


def run_program(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program with more variables of the environment; keep its output as text."""
    options['env'] = {**os.environ, **options.pop('variables', {})}
    settings = {'capture_output': True, 'text': True, 'check': False, **options}
    return subprocess.run([*map(str, words)], **settings)


def run_python(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run this Python in the same way."""
    return run_program(sys.executable, *words, **options)
