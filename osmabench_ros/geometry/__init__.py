"""Poses, camera intrinsics, boxes, frames of a sequence; all axis conversions are in `axes`."""
