"""What tests share: small scenes and files, and programs that they start."""

from pathlib import Path

SUPPORT = Path(__file__).parent
"""The folder of these programs."""
TESTS = SUPPORT.parent
