"""The scene of fourteen tiles, and a map of it with errors, that OpenLex3D's code was run on."""

from pathlib import Path

import numpy as np

from osmabench_ros.maps import semantic_map
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode

FOLDER = Path(__file__).resolve().parents[1] / 'data' / 'upstream' / 'openlex3d'
TIERS = FOLDER / 'gt_categories.json'
PROMPTS = FOLDER / 'prompt_list.txt'
QUERIES = FOLDER / 'gt_categories_query_to_object_mapping_all.json'
RESULTS = FOLDER / 'results.json'
ALIGNMENTS = ('per_mask', 'global')
TOP_N = (1, 5)

with np.load(FOLDER / 'inputs.npz') as _arrays:
    _INPUTS = dict(_arrays)


def encode(space, texts):
    """Return the stored vector of each word of the prompt list."""
    words = PROMPTS.read_text().split('\n')
    return _INPUTS['word_vectors'][[words.index(text) for text in texts]]


def true_surface():
    """Return tiles of 0.75 m in a row."""
    points, instances = _INPUTS['true_points'], _INPUTS['true_instances']
    normals = np.tile(np.array([[0, 0, 1]], np.float32), (len(points), 1))
    return LabelledCloud(points, np.zeros(len(points), np.int32), instances, normals)


def map_with_errors():
    """Return noisy points, a seventh of them missing, in masks that spill over."""
    instances = _INPUTS['instances']
    space = semantic_map.FeatureSpace('clip', _INPUTS['feature_vectors'], 'ViT-H-14')
    nodes = tuple(
        SceneNode(row + 1, feature_row=row, feature_space='clip')
        for row in range(len(space.vectors))
    )
    dense = semantic_map.DenseMap(
        _INPUTS['points'], instances=instances, feature_rows=instances - 1, feature_space='clip'
    )
    header = semantic_map.MapHeader(semantic_map.Provenance('test'))
    return semantic_map.SemanticMap(
        header, SceneGraph(nodes), dense, feature_spaces={'clip': space}
    )
