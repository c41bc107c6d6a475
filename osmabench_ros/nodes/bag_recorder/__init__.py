"""Records topics to a bag."""
