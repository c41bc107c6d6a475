"""Hypo3D (Mao et al., 2025): questions about a scene after a change that it describes in words."""
