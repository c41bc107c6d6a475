"""Pure functions on arrays that score maps."""
