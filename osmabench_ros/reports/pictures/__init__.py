"""Views from above, sample frames and coloured maps."""
