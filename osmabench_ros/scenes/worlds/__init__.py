"""Worlds of other simulators, for `osmabench scene import`."""
