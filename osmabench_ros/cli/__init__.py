"""The osmabench command."""
