"""Judges: by rule, by language model, and how well either agrees with published verdicts."""
