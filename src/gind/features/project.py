"""`project`: the first linear map of a model, on dense or sparse features."""

import torch
import torch.nn.functional as F
from torch import Tensor

from gind.features.drop import dropout as drop
from gind.features.layout import check
from gind.features.op import multiply, thin

__all__ = ["project"]


def project(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, dropout: float = 0.0, training: bool = False
) -> Tensor:
    """dropout(X) Wᵀ + c, (n, d) to (n, h), for `x` dense or CSR, `weight` (h, d) and `bias` (h,).

    Dense: F.linear(dropout(x)). CSR: the same in distribution, since a zero stays zero whether it is dropped or not;
    time and memory are those of the non-zeros, random numbers come from torch's generator, and gradients flow to
    `weight` and `bias`. Where X is zero the sparse product does not see W: a NaN there stays there.
    """
    _check_arguments(x, weight, bias, dropout)
    if x.layout == torch.strided:
        return F.linear(drop(x, dropout, training), weight, bias)
    check(x)
    matrix = x.crow_indices().long(), x.col_indices().long(), x.values()
    if training and dropout > 0:
        matrix = thin(matrix, dropout)
    product = multiply(matrix, weight.t())
    return product if bias is None else product + bias


def _check_arguments(x: Tensor, weight: Tensor, bias: Tensor | None, dropout: float) -> None:
    if not 0 <= dropout < 1:
        raise ValueError(f"`dropout` must lie in [0, 1), got {dropout}.")
    if not isinstance(x, Tensor) or x.layout not in (torch.strided, torch.sparse_csr):
        kind = x.layout if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"`x` must be a dense or CSR tensor, got {kind}. Use `choose_layout(x)` once, before training.")
    if weight.dim() != 2 or x.dim() != 2 or x.shape[1] != weight.shape[1]:
        raise ValueError(
            f"`x` must have shape (nodes, channels) and `weight` (out, channels), got {tuple(x.shape)} and "
            f"{tuple(weight.shape)}."
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"`bias` must have shape ({len(weight)},), got {tuple(bias.shape)}.")
    if not x.dtype == weight.dtype == (weight if bias is None else bias).dtype:
        raise TypeError(
            f"`x` is {x.dtype} but the parameters are {weight.dtype}. Use `.to({weight.dtype})` on the features."
        )
    if x.layout == torch.sparse_csr and x.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"Sparse features must be float32 or float64, got {x.dtype}. Use `.float()` or `.to_dense()`.")
