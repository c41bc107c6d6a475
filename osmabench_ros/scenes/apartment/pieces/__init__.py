"""Builders of single pieces: each takes a `Style` and returns a `Piece`."""
