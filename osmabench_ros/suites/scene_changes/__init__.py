"""What changed in a scene between two maps, and how well a method finds it."""
