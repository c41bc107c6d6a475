"""Colours to messages."""

from __future__ import annotations

from std_msgs.msg import ColorRGBA

from osmabench_ros.reports.palette import Rgb


def color_message(color: Rgb, alpha: float) -> ColorRGBA:
    """Return a colour message of 8-bit channels."""
    red, green, blue = (channel / 255 for channel in color)
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)
