"""Questions that a language model writes about frames, checked and balanced."""
