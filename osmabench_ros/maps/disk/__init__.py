"""Semantic maps on disk: map.json and its arrays, and their validation."""
