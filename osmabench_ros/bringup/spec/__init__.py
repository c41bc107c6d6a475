"""The one definition of the nodes of a run, and of where they run."""
