"""Plays a bag on the topics it was recorded from."""
