"""Visual grounding: referring expressions that a map answers with a node, as ScanRefer scores."""
