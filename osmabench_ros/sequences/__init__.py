"""Posed RGB-D sequences on disk and in bags; ground-truth clouds."""
