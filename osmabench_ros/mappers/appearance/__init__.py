"""Appearance: depth and raw colour alone, no ground truth and no network."""
