"""Pretrained networks by hub name or folder, on the device there is."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import Field

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.device import resolve_device
from osmabench_ros.base.files import sha256_of
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, MissingDependencyError, needing

EXTRA = extra('open_vocabulary')


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
        """Return what a network makes of tensors."""
        import torch

        with torch.inference_mode():
            return model(**self.moved(inputs), **options)

    def moved(self, inputs: Any) -> dict[str, Any]:
        """Return tensors on the device, those of floating point in the networks' format."""
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
    """Return what a user can do where a network cannot be loaded."""
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
