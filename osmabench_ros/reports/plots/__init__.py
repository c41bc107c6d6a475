"""Plots of the report, as SVG."""
