"""OSMa-Bench's published results (test/data/published)."""

from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1] / 'data' / 'published'
SEGMENTATION = _ROOT / 'segmentation'
VQA = _ROOT / 'vqa'
SCENE_GRAPHS = _ROOT / 'scene_graphs'
