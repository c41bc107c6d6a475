"""Publishes the map of a stack that was not written for this package."""
