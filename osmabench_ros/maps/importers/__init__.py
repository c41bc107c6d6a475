"""Importers of the output of mapping methods, one file per method."""
