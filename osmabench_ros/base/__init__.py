"""Files, limits, strict models and processes, which all other packages share."""
