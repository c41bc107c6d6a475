"""What tests share: small scenes and files, and programs that they start."""

from pathlib import Path

# The folder of these programs.
SUPPORT = Path(__file__).parent
TESTS = SUPPORT.parent
