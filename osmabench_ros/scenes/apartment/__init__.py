"""A procedural furnished apartment: every seed is another valid layout."""
