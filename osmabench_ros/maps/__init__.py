"""The semantic map, its form on disk, importers and exporters."""
