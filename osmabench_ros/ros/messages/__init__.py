"""Conversions between the values of this package and ROS messages."""
