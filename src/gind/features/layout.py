"""Which layout of the features is fast, and what is wrong with features that cannot be used."""

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

__all__ = ["CROSSOVER", "check", "choose_layout", "density"]

CROSSOVER = 0.15
"""density up to which CSR is taken (docs/decisions/0007-sparse-input.md)"""
_SMALL = 2**16  # entries of a dense matrix: below this, calling the sparse operators costs more than they save
_LAYOUTS = (torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)
_checked: Any = WeakIdKeyDictionary()  # features → their version when they were found good


def choose_layout(x: Tensor) -> Tensor:
    """The features as CSR if that makes `project` faster, else dense; the same object if nothing changes.

    CSR if n d ≥ 65536 and density ≤ 0.15, in float32 or float64 and on the CPU, where this was measured. On other
    devices dense stays dense and sparse becomes CSR. Features that require a gradient stay dense.
    """
    check(x)
    if x.device.type != "cpu":
        sparse = x.layout != torch.strided
    else:
        sparse = (
            x.dtype in (torch.float32, torch.float64)
            and not x.requires_grad
            and x.numel() >= _SMALL
            and density(x) <= CROSSOVER
        )
    if x.layout == (torch.sparse_csr if sparse else torch.strided):
        return x
    # kept by the caller, so that autograd may meet it later; that CSR is in beta is no news to users
    with torch.inference_mode(False), torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse", UserWarning)
        if sparse:
            return (x.coalesce() if x.layout == torch.sparse_coo else x).to_sparse_csr()
        return x.to_dense()


def density(x: Tensor) -> float:
    """Share of the entries of a matrix that are not zero (dense) or that are stored (sparse); 0 if it has none."""
    if x.layout == torch.strided:
        entries = int(torch.count_nonzero(x))
    else:
        entries = len(x.coalesce().values() if x.layout == torch.sparse_coo else x.values())
    return entries / max(x.numel(), 1)


def check(x: Any) -> None:
    """Refuse features that are not a finite floating point matrix, dense or sparse; the same tensor is read once."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"`x` must be a floating point tensor of features, got {kind}. Use `.float()`.")
    if x.layout not in _LAYOUTS:
        raise TypeError(f"`x` must be dense, COO, CSR or CSC, got {x.layout}. Use `.to_sparse_csr()`.")
    if x.dim() != 2:
        raise ValueError(f"`x` must have shape (nodes, channels), got {tuple(x.shape)}.")
    if x.layout != torch.strided and x.requires_grad:
        raise ValueError(
            "Sparse features are data and get no gradient, but `x` requires one. Pass `x.detach()`, or `x.to_dense()` "
            "to learn the features."
        )
    version = None if x.is_inference() else x._version
    if version is not None and _checked.get(x) == version:
        return
    _check_values(x.detach())
    if version is not None:
        _checked[x] = version


def _check_values(x: Tensor) -> None:
    if x.layout in (torch.sparse_csr, torch.sparse_csc):
        _check_indices(x)
    values = x if x.layout == torch.strided else x._values() if x.layout == torch.sparse_coo else x.values()
    if values.dim() != x.dim() - (x.layout != torch.strided):
        raise ValueError("`x` stores dense rows or blocks. Use `.to_dense().to_sparse_csr()`.")
    bad = ~torch.isfinite(values)
    if bool(bad.any()):
        raise ValueError(
            f"`x` holds NaN or infinity, first at node {_first_row(x, bad)}. Clean or impute the features."
        )


def _check_indices(x: Tensor) -> None:
    """Torch does not look at the indices of a CSR matrix, and a wrong one would read or write foreign memory."""
    compressed, plain = (
        (x.crow_indices(), x.col_indices()) if x.layout == torch.sparse_csr else (x.ccol_indices(), x.row_indices())
    )
    try:
        torch.sparse_compressed_tensor(
            compressed, plain, x.values(), tuple(x.shape), layout=x.layout, check_invariants=True
        )
    except RuntimeError as error:
        raise ValueError(
            f"The indices of `x` are not those of a sparse matrix: {error} Columns must be in range, sorted and "
            "distinct in each row. Build the matrix with `.to_sparse_csr()`."
        ) from error


def _first_row(x: Tensor, bad: Tensor) -> int:
    if x.layout == torch.strided:
        return int(bad.any(dim=1).nonzero()[0])
    if x.layout == torch.sparse_coo:
        return int(x._indices()[0][bad].min())
    if x.layout == torch.sparse_csc:
        return int(x.row_indices()[bad].min())
    return int(torch.searchsorted(x.crow_indices(), bad.nonzero()[0], right=True)) - 1
