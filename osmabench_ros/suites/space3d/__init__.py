"""Space3D-Bench: its scene folders, its scores, and its kinds of questions for any scene."""
