"""Publishes a simulated scene or a recorded sequence at the pace of the run."""
