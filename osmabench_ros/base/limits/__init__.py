"""Reading of untrusted files within limits of memory, time and file access."""
