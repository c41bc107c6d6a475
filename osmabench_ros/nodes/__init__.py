"""One thin lifecycle node a file."""
