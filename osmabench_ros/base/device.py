"""Where tensors are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from osmabench_ros.base.configuration import extra
from osmabench_ros.errors import ConfigError, needing

if TYPE_CHECKING:
    import torch


def resolve_device(name: str = 'auto', kinds: tuple[str, ...] = ('cuda',)) -> torch.device:
    """Return a torch device: a name of torch's, or 'auto' for the first of `kinds` usable here.

    Metrics need 64-bit floats, which 'mps' does not have. Raises MissingDependencyError without
    torch, ConfigError for a device that is not here, or an accelerator that will not do.
    """
    with needing('torch is needed', extra('metrics')):
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

    Unsigned integers of 16 and 32 bits widen, as torch computes little with them.
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
