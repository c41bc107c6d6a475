"""Checks of a running stack for `osmabench doctor`."""
