"""The environment variable with the token of a run; needs no ROS."""

from __future__ import annotations

import os
import secrets

VARIABLE = 'OSMABENCH_RUN_TOKEN'
"""In the environment, because other users can see arguments."""

TOKEN_BYTES = 32


def new_token() -> str:
    """Return a random token that cannot be guessed."""
    return secrets.token_hex(TOKEN_BYTES)


def token_of_shell() -> str:
    """Return the token that the user has set for several launches; empty for none."""
    return os.environ.get(VARIABLE, '')
