"""Equilibria are solved in the precision of their parameters, under autocast too."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

__all__ = ["without_autocast"]


@contextlib.contextmanager
def without_autocast(b: Tensor, dtype: torch.dtype) -> Iterator[Tensor]:
    """Autocast is off within, and b, which a layer before may have left in another precision, is in this one."""
    if not isinstance(b, Tensor) or not torch.is_autocast_enabled(b.device.type):
        yield b
        return
    with torch.autocast(b.device.type, enabled=False):
        yield b.to(dtype) if b.is_floating_point() else b
