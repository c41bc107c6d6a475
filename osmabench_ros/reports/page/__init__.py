"""The report as self-contained HTML pages."""
