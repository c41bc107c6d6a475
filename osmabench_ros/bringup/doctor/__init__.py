"""What `osmabench doctor` and the start of a run check of this machine and a configuration."""
