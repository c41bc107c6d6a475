"""What other packages share, such as files, limits and strict models."""
