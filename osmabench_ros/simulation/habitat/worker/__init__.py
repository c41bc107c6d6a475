"""What runs under Habitat-Sim's interpreter.

Nothing here imports the rest of the package: the worker has only habitat_sim, magnum and NumPy,
and its Python may be as old as 3.9.
"""
