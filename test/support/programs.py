"""Programs that tests run to their end."""

import os
import subprocess
import sys


def run_program(*words, **options):
    """Run a program with more variables of the environment; keep its output as text."""
    options['env'] = {**os.environ, **options.pop('variables', {})}
    settings = {'capture_output': True, 'text': True, 'check': False, **options}
    return subprocess.run([*map(str, words)], **settings)


def run_python(*words, **options):
    """Run this Python in the same way."""
    return run_program(sys.executable, *words, **options)
