"""Hosts a bundled mapping method."""
