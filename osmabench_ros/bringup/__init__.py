"""The one definition of nodes, parameters and participants."""
