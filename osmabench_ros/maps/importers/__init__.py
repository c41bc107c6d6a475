"""What mapping methods leave behind, one file a method."""
