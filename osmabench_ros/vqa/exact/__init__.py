"""Exact questions: generated from a ground-truth scene graph, answerable from it, seeded."""
