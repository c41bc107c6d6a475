"""Scores the map of a bag, with or without a reference."""
