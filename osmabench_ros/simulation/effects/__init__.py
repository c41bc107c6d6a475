"""What a real camera and a real robot do to ideal frames."""
