"""Answers from a recorded map: by rule, by language model, and baselines without a map."""
