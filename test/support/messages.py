"""Messages with a field changed."""


def put(message, place, value):
    """Set the field at a place such as 'graph.objects.0.id'."""
    *way, last = place.split('.')
    for name in way:
        message = message[int(name)] if name.isdigit() else getattr(message, name)
    if last.isdigit():
        message[int(last)] = value
    else:
        setattr(message, last, value)
