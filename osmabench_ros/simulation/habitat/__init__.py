"""Habitat-Sim as a simulator: it renders in a worker process with its own interpreter."""
