"""Pretrained networks on the device there is, and the features of masks and texts they give."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, model_validator

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.device import resolve_device
from osmabench_ros.base.files import sha256_of
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, MissingDependencyError, needing

EXTRA = extra('open_vocabulary')
# Begins names of encoders of open_clip, ``'open_clip:ViT-H-14/laion2b_s32b_b79k'``.
OPEN_CLIP = 'open_clip:'


# The context of a crop around the box of its mask.
MARGIN_PX = 20


class FeatureOptions(Strict):
    """Which pictures of a mask the encoder sees.

    Parameters
    ----------
    crop, masked_crop, whole_image : float
        Weights of the features of the crop, of the crop without the pixels outside the mask, and
        of the whole image; features of weight 0 are not computed.
    """

    crop: float = Field(1.0, ge=0)
    masked_crop: float = Field(0.0, ge=0)
    whole_image: float = Field(0.0, ge=0)

    @model_validator(mode='after')
    def _something_is_seen(self) -> FeatureOptions:
        if self.crop + self.masked_crop <= 0:
            raise ValueError('crop or masked_crop must be more than 0: masks need features')
        return self


class ImageEncoder(Protocol):
    """Turns pictures and texts into features of length 1 in one space."""

    model: str
    pretrained: str
    revision: str
    # By which cosines are multiplied before a softmax over names.
    scale: float

    def images(self, pictures: Sequence[Image.Image]) -> NDArray[np.float32]:
        """Return features (N, D) of N >= 1 pictures."""
        ...

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return features (N, D) of N >= 1 texts."""
        ...


def make_encoder(source: NetworkSource, runtime: Runtime) -> ImageEncoder:
    """Load an encoder of transformers, or of open_clip if the name begins with ``open_clip:``."""
    if source.name.startswith(OPEN_CLIP):
        return OpenClipEncoder(source, runtime)
    return TransformersEncoder(source, runtime)


class TransformersEncoder:
    """Both towers of a CLIP or SigLIP network of transformers."""

    def __init__(self, source: NetworkSource, runtime: Runtime) -> None:
        self._model = runtime.model('AutoModel', source)
        if not hasattr(self._model, 'get_text_features'):
            raise ConfigError(
                f'"{source.name}" has no features of text; give a network of the CLIP or SigLIP '
                'family as features'
            )
        self._processor = load('AutoImageProcessor', source)
        self._tokenizer = load('AutoTokenizer', source)
        self._runtime = runtime
        self.model, _, self.revision = version(self._model, source).rpartition('@')
        self.pretrained = ''
        self.scale = float(self._model.logit_scale.detach().exp())

    def images(self, pictures: Sequence[Image.Image]) -> NDArray[np.float32]:
        """Return features (N, D) of N >= 1 pictures."""
        return self._features(
            self._model.get_image_features,
            lambda part: self._processor(images=part, return_tensors='pt'),
            pictures,
        )

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return features (N, D) of N >= 1 texts."""
        # SigLIP learnt with texts of full length.
        length = self._model.config.text_config.max_position_embeddings
        form = {'padding': 'max_length', 'max_length': length, 'truncation': True}
        return self._features(
            self._model.get_text_features,
            lambda part: self._tokenizer(part, **form, return_tensors='pt'),
            texts,
        )

    def _features(self, tower: Any, read: Any, items: Sequence[Any]) -> NDArray[np.float32]:
        def encode(part: list[Any]) -> Any:
            inputs = self._runtime.moved(read(part))
            inputs.pop('token_type_ids', None)
            features = tower(**inputs)
            # Newer versions return all outputs of the tower.
            return getattr(features, 'pooler_output', features)

        return _in_batches(items, self._runtime.batch_size, encode)


class OpenClipEncoder:
    """Both towers of a network of open_clip; the part after the slash may be a file of weights."""

    def __init__(self, source: NetworkSource, runtime: Runtime) -> None:
        with needing(f'features of "{source.name}" need open_clip', EXTRA):
            open_clip = import_module('open_clip')
        self.model, _, self.pretrained = source.name.removeprefix(OPEN_CLIP).partition('/')
        if not self.pretrained:
            raise ConfigError(f'"{source.name}" names no weights; give {OPEN_CLIP}MODEL/WEIGHTS')
        try:
            model, _, self._transform = open_clip.create_model_and_transforms(
                self.model, pretrained=self.pretrained, device=runtime.device
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigError(
                f'{missing(source)}: {str(error).splitlines()[0]}; the part after "/" may be a '
                'file of weights too'
            ) from error
        self._model = model.eval().to(runtime.dtype)
        self._tokenizer = open_clip.get_tokenizer(self.model)
        self._runtime = runtime
        self.revision = self.pretrained
        self.scale = float(model.logit_scale.detach().exp())

    def images(self, pictures: Sequence[Image.Image]) -> NDArray[np.float32]:
        """Return features (N, D) of N >= 1 pictures."""
        import torch

        def encode(part: list[Image.Image]) -> Any:
            pixels = torch.stack([self._transform(item) for item in part])
            return self._model.encode_image(pixels.to(self._runtime.device, self._runtime.dtype))

        return _in_batches(pictures, self._runtime.batch_size, encode)

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return features (N, D) of N >= 1 texts."""
        return _in_batches(
            texts,
            self._runtime.batch_size,
            lambda part: self._model.encode_text(self._tokenizer(part).to(self._runtime.device)),
        )


def _in_batches(items: Sequence[Any], size: int, encode: Any) -> NDArray[np.float32]:
    """Return the features of items, at length 1, encoded in batches."""
    import torch

    with torch.inference_mode():
        parts = [encode(list(items[i : i + size])) for i in range(0, len(items), size)]
    features = torch.cat(parts).float()
    return np.asarray((features / features.norm(dim=-1, keepdim=True)).cpu(), np.float32)


def mask_features(
    color: NDArray[np.uint8],
    masks: NDArray[np.bool_],
    encoder: ImageEncoder,
    options: FeatureOptions,
) -> NDArray[np.float32]:
    """Return a feature (K, D) of length 1 for each mask (K, height, width), none of them empty.

    It is the weighted sum of the features of its crop, its crop on grey, and the whole image.
    """
    crops = []
    cut = []
    for mask in masks:
        window = _window(mask)
        crops.append(Image.fromarray(color[window]))
        if options.masked_crop:
            grey = np.where(mask[window][..., None], color[window], np.uint8(127))
            cut.append(Image.fromarray(grey))
    total = np.zeros((1, 1), np.float32)
    for weight, pictures in (
        (options.crop, crops),
        (options.masked_crop, cut),
        (options.whole_image, [Image.fromarray(color)]),
    ):
        if weight:
            total = total + np.float32(weight) * encoder.images(pictures)
    return np.asarray(total / np.linalg.norm(total, axis=1, keepdims=True), np.float32)


def _window(mask: NDArray[np.bool_]) -> tuple[slice, slice]:
    down, right = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    rows, columns = (
        slice(max(0, int(inside[0]) - MARGIN_PX), int(inside[-1]) + MARGIN_PX + 1)
        for inside in (down, right)
    )
    return rows, columns


class DeviceOptions(Strict):
    """Where and how networks compute.

    Parameters
    ----------
    device : str
        'auto' takes CUDA, else MPS, else the CPU; otherwise what torch understands.
    half_precision : bool
        Compute with 16 bits; not on the CPU, which is slower with them.
    batch_size : int
        Crops, or points that masks grow from, that go through a network at once.
    """

    device: str = 'auto'
    half_precision: bool = True
    batch_size: int = Field(32, ge=1)


class NetworkSource(Strict):
    """Where a network comes from.

    Parameters
    ----------
    name : str
        Name on the Hugging Face hub, or a folder that `save_pretrained` of transformers made.
    revision : str
        Branch, tag or commit on the hub.
    """

    name: str = Field(min_length=1)
    revision: str = 'main'


class Runtime:
    """Device and number format of all networks of a mapper."""

    def __init__(self, options: DeviceOptions) -> None:
        with needing('the mapper "open_vocabulary" needs torch', EXTRA):
            import torch
        self.batch_size = options.batch_size
        self.device = resolve_device(options.device, ('cuda', 'mps'))
        half = options.half_precision and self.device.type != 'cpu'
        self.dtype = torch.float16 if half else torch.float32

    def model(self, kind: str, source: NetworkSource) -> Any:
        """Load a network by an auto class of transformers, e.g. ``'AutoModel'``."""
        model = load(kind, source, dtype=self.dtype)
        return model.to(self.device).eval()

    def run(self, model: Any, inputs: Any, **options: Any) -> Any:
        """Return the output of a network for tensors."""
        import torch

        with torch.inference_mode():
            return model(**self.moved(inputs), **options)

    def moved(self, inputs: Any) -> dict[str, Any]:
        """Return tensors on the device, floating-point ones in the networks' format."""
        return {
            name: value.to(self.device, self.dtype)
            if value.is_floating_point()
            else value.to(self.device)
            for name, value in inputs.items()
        }


def load(kind: str, source: NetworkSource, **options: Any) -> Any:
    """Load a network, processor or tokenizer by an auto class of transformers.

    Raises ConfigError if its files are not here and cannot be had, MissingDependencyError if a
    library is missing.
    """
    with needing('the mapper "open_vocabulary" needs transformers', EXTRA):
        auto = getattr(import_module('transformers'), kind)
    try:
        return auto.from_pretrained(source.name, revision=source.revision, **options)
    except ImportError as error:
        raise MissingDependencyError(f'{kind} of "{source.name}": {error}; {EXTRA}') from error
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f'{missing(source)}: {str(error).splitlines()[0]}') from error


def missing(source: NetworkSource) -> str:
    """Return the remedy if a network cannot be loaded."""
    if Path(source.name).is_dir():
        return f'folder {source.name} holds no network that transformers can load for this'
    return (
        f'network "{source.name}" (revision {source.revision}) is neither a folder nor to be had '
        f'from the hub; with a connection, run: hf download {source.name} --revision '
        f'{source.revision} --local-dir FOLDER; then give FOLDER as its name'
    )


def version(model: Any, source: NetworkSource) -> str:
    """Return name and revision for the provenance: the commit of the hub, a digest of a folder."""
    folder = Path(source.name)
    if not folder.is_dir():
        commit = getattr(model.config, '_commit_hash', None) or source.revision
        return f'{source.name}@{commit}'
    return f'{folder.name}@sha256:{sha256_of(folder)[:12]}'


def model_type(source: NetworkSource) -> str:
    """Return the architecture that the configuration of a network names, e.g. ``'sam2'``."""
    return str(load('AutoConfig', source).model_type)
