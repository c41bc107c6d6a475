"""Questions about a scene, answers from a map, and their judgement."""
