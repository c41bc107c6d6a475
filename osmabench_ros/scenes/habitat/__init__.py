"""Scenes in the formats of Habitat: scene data sets, HM3D's semantic annotation."""
