"""Maps from messages, live or recorded: any objects with the fields of the message."""
