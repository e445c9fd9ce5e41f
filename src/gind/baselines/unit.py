"""Rows of length 1."""

import torch
from torch import Tensor

__all__ = ["unit_rows"]


def unit_rows(x: Tensor) -> Tensor:
    """x_i/‖x_i‖ for each row. A row of zeros stays, with gradient 0 where F.normalize has 10¹² and drowns all others.

    No ε: a signal that fades along a chain comes back to length 1 as far as the precision reaches. Entries below
    tiny/eps (10⁻²⁹² in double precision) count as zero, or the gradient would overflow.
    """
    least = torch.finfo(x.dtype).tiny / torch.finfo(x.dtype).eps
    largest = x.detach().abs().amax(dim=1, keepdim=True)
    there = largest > least
    largest = largest.where(there, 1.0)
    # in units of a power of two, which change no digit: squares of small numbers would vanish
    scaled = torch.where(there, x, 0.0) / (largest / torch.frexp(largest).mantissa)
    size = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
    return torch.where(there, scaled / size.where(there, 1.0), 0.0)
