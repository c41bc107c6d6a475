"""Simulators, conditions, trajectories."""
