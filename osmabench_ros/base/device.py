"""Where tensors are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from osmabench_ros.errors import ConfigError, needing

if TYPE_CHECKING:
    import torch


def resolve_device(name: str = 'auto', kinds: tuple[str, ...] = ('cuda',)) -> torch.device:
    """Return a torch device.

    Parameters
    ----------
    name : str
        'auto' takes the first of `kinds` that is usable here, else the CPU; otherwise what torch
        understands, e.g. 'cpu' or 'cuda:1'.
    kinds : tuple of str
        Accelerators that will do. Metrics need 64-bit floats, which 'mps' does not have.

    Raises
    ------
    MissingDependencyError
        If torch is not installed.
    ConfigError
        If the device does not exist here, or is an accelerator that will not do.
    """
    with needing('torch is needed', 'install it with: pip install "osmabench_ros[metrics]"'):
        import torch
    usable: dict[str, Callable[[], bool]] = {
        'cuda': torch.cuda.is_available,
        'mps': torch.backends.mps.is_available,
    }
    if name == 'auto':
        return torch.device(next((kind for kind in kinds if usable[kind]()), 'cpu'))
    allowed = ', '.join(('auto', *kinds))
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f'device "{name}" is unknown; use {allowed} or cpu') from error
    if device.type in usable and device.type not in kinds:
        raise ConfigError(f'device "{name}" will not do here; use {allowed} or cpu')
    if device.type in usable and not usable[device.type]():
        raise ConfigError(f'device "{name}" was asked for, but torch finds none here; use auto')
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
