"""Starts runs, sweeps and single nodes as processes, watches them and ends them."""
