"""What runs under Habitat-Sim's interpreter, as old as Python 3.9; imports nothing of ours."""
