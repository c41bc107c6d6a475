"""The label set of the apartment, the same for every seed."""

from __future__ import annotations

from osmabench_ros.semantics.labels import LabelSet

STRUCTURE = ('wall', 'floor', 'ceiling', 'door', 'door frame', 'window')

THINGS = (
    'alarm clock', 'apple', 'armchair', 'bathtub', 'bed', 'blanket', 'book', 'bookshelf',
    'bottle', 'bowl', 'box', 'cabinet', 'candle', 'ceiling lamp', 'chair', 'clock', 'clothes',
    'coat rack', 'coffee table', 'console table', 'cup', 'curtain', 'cushion', 'cutting board',
    'desk', 'dresser', 'floor lamp', 'globe', 'kettle', 'keyboard', 'kitchen counter',
    'knife block', 'laptop', 'laundry basket', 'microwave', 'mirror', 'monitor', 'mouse',
    'nightstand', 'office chair', 'orange', 'painting', 'pan', 'pillow', 'plant', 'plate', 'pot',
    'printer', 'range hood', 'refrigerator', 'remote control', 'rug', 'shoe rack', 'shoes',
    'sink', 'soap dispenser', 'sofa', 'speaker', 'stool', 'stove', 'table', 'table lamp',
    'toaster', 'toilet', 'toilet paper', 'toothbrush holder', 'towel', 'trash can', 'tv',
    'tv stand', 'vase', 'wall cabinet', 'wardrobe', 'washing machine',
)  # fmt: skip

APARTMENT_LABELS = LabelSet.from_names('apartment', THINGS, STRUCTURE)
