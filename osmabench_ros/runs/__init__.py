"""Identity, directory, stages and resumption of runs."""
