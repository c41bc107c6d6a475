"""Embedded simulator: OpenGL through EGL, on a GPU or on Mesa's software renderer."""
