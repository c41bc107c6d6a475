"""Where metrics are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from osmabench_ros.errors import ConfigError, needing

if TYPE_CHECKING:
    import torch


def resolve_device(name: str = 'auto') -> torch.device:
    """Return a torch device.

    Parameters
    ----------
    name : str
        'auto' takes CUDA when there is a usable device, else the CPU; otherwise what torch
        understands, e.g. 'cpu' or 'cuda:1'.

    Raises
    ------
    MissingDependencyError
        If torch is not installed.
    ConfigError
        If the device does not exist here.
    """
    with needing(
        'the metrics need torch',
        'install it with: pip install "osmabench_ros[metrics]"',
    ):
        import torch
    if name == 'auto':
        return torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f'device "{name}" is unknown; use auto, cpu or cuda') from error
    if device.type == 'cuda' and not torch.cuda.is_available():
        raise ConfigError(f'device "{name}" was asked for, but torch finds no CUDA device here')
    return device


def to_tensor(values: Any, device: torch.device | str = 'cpu') -> torch.Tensor:
    """Return an array or tensor as a tensor on a device, without copying where that is possible.

    Parameters
    ----------
    values : array_like or torch.Tensor
        Of any shape; unsigned 16- and 32-bit integers widen, torch computes little with them.
    device : torch.device or str
        'auto' or a torch device.
    """
    import numpy as np
    import torch

    target = resolve_device(device) if isinstance(device, str) else device
    if isinstance(values, torch.Tensor):
        return values.to(target)
    array = np.asarray(values)
    if array.dtype in (np.uint16, np.uint32):
        array = array.astype(np.int64)
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.as_tensor(array).to(target)
