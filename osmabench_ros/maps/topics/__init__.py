"""Maps out of recorded messages: any objects with the fields of the message."""
