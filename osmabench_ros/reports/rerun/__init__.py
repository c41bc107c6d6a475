"""Recordings for the Rerun viewer."""
