"""Questions that a language model writes about frames, checked, thinned out and balanced."""
