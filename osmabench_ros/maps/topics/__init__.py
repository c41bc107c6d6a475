"""Maps out of recorded messages: objects with the fields of the message, whoever made them."""
