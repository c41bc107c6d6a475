"""Parts of every node: lifecycle, parameters, diagnostics, participation in a run."""
