"""Worlds of other simulators, for `osmabench import-scene`."""
