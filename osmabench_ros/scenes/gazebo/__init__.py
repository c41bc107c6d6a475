"""Gazebo worlds: SDF with models, found by `model://` URIs."""
