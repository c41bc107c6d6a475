"""Scene folders: a glTF file and a manifest, `scene.json`, that says what its nodes are."""
