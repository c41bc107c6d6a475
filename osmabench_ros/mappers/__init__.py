"""Mapping methods that come with the package."""
