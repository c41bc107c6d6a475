"""Scores maps of runs, and imported maps."""
