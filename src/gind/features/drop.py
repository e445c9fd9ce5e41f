"""`dropout`: as PyTorch's, from sixteen random bits a number instead of a draw of its own, several times faster."""

import math

import torch
from torch import Tensor, nn

__all__ = ["Dropout", "dropout"]

_BITS = 16


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """x with each number left out with probability p and the others divided by 1 - p, in training; else x itself.

    A number goes if its 16 random bits, from torch's generator of the device, are below round(p 2¹⁶): p is kept to
    2⁻¹⁷, and the division is by the share that is really kept, so that the mean is x.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"The probability of dropout must lie in [0, 1], got {p}.")
    left_out = round(p * 2**_BITS)
    if not training or left_out == 0:
        return x
    if left_out == 2**_BITS:
        return x * 0
    draws = math.ceil(x.numel() * _BITS / 64)
    bits = torch.empty(draws, dtype=torch.int64, device=x.device).random_(-(2**63), None).view(torch.int16)
    keep = (bits[: x.numel()] >= left_out - 2 ** (_BITS - 1)).view(x.shape)
    factor: Tensor = keep.to(x.dtype).mul_(2**_BITS / (2**_BITS - left_out))
    return x * factor


class Dropout(nn.Module):
    """`dropout` as a module."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """x, thinned in training."""
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"
