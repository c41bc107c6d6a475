"""Scores recorded maps and publishes the report."""
