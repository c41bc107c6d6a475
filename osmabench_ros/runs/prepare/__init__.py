"""Data shared by the runs of one scene: path, ground truth, questions."""
