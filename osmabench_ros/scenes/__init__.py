"""Scenes, their loaders and their ground truth."""
