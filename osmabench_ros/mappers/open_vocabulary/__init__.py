"""Open-vocabulary mapping: masks and features of pretrained networks, fused to objects."""
