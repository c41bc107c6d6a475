"""OSMa-Bench++: scenes made from prompts, and questions whose answers the prompt gives."""
