"""Starts the osmabench command, or names the packages that pip has to install first."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command; if a required package is missing or too old, name the file for pip."""
    try:
        from osmabench_ros.cli.main import main as command

        command()
    except ImportError as error:
        from osmabench_ros.base.configuration import requirements_file, unmet_requirements

        unmet = unmet_requirements()
        if not unmet:
            raise
        sys.stderr.write(
            f'error: {", ".join(unmet)} ({error}); pip install -r {requirements_file()} in a '
            'virtual environment, as the README shows\n'
        )
        sys.exit(3)
