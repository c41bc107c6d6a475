"""Looks at a stack that is already running: what doctor says of its topics."""
