"""Captures the maps of a mapping method on disk."""
