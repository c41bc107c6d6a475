"""Results of runs: reports, timings, manifests, and their folder."""
