"""Publishes maps in colour for RViz and Foxglove."""
