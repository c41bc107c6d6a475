"""Published protocols, one file each."""
