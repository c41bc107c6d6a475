"""CoSpace (Zhu et al., 2025): questions about the views around one place, and saved answers."""
