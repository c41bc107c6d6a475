"""Any offline mapping method as a mapper."""
