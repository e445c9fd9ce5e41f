"""The torch operators `thin`, `multiply` and `multiply_transposed` on the three tensors of a CSR matrix X (n x d).

Plain PyTorch is the definition and serves every device. On the CPU numba takes over where `gind.kernels` has it: a
thread owns rows or channels of the result, so the bits of a result do not depend on the number of threads.
"""

import functools
from typing import Any

import torch
from torch import Tensor

from gind.kernels import has_numba

__all__ = ["multiply", "multiply_transposed", "thin"]

Csr = tuple[Tensor, Tensor, Tensor]  # crow (n + 1), col (entries), values (entries)


@torch.library.custom_op("gind::thin", mutates_args=())
def _thin(
    crow: Tensor, col: Tensor, values: Tensor, bits: Tensor, threshold: int, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    keep = bits >= threshold
    before = torch.cat([crow.new_zeros(1), keep.cumsum(0)])
    return before[crow], col[keep], values[keep] * scale


@torch.library.custom_op("gind::multiply", mutates_args=())
def _multiply(crow: Tensor, col: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    return _matrix(crow, col, values, len(dense)) @ dense


@torch.library.custom_op("gind::multiply_transposed", mutates_args=())
def _multiply_transposed(
    crow: Tensor, col: Tensor, values: Tensor, dense: Tensor, columns: int, flipped: bool
) -> Tensor:
    product = _matrix(crow, col, values, columns).t() @ dense
    return product.t().contiguous().t() if flipped else product


def _matrix(crow: Tensor, col: Tensor, values: Tensor, columns: int) -> Tensor:
    return torch.sparse_csr_tensor(crow, col, values, (len(crow) - 1, columns), check_invariants=False)


def thin(matrix: Csr, dropout: float) -> Csr:
    """X with each entry left out with probability p, and the others divided by 1 - p; constant, no gradient.

    An entry goes if its 32 random bits, from torch's generator of the device, are below p 2³²: so p is exact to 2⁻³³.
    """
    crow, col, values = matrix
    draws = (len(col) + 1) // 2
    bits = torch.empty(draws, dtype=torch.int64, device=col.device).random_(-(2**63), None)
    threshold = min(round(dropout * 2**32) - 2**31, 2**31 - 1)
    result: Csr = _thin(crow, col, values, bits.view(torch.int32)[: len(col)], threshold, 1 / (1 - dropout))
    return result


def multiply(matrix: Csr, dense: Tensor) -> Tensor:
    """X D for D (d, h), differentiable in D; where D is the transpose of a matrix, so is its gradient."""
    result: Tensor = _multiply(*matrix, dense)
    return result


def multiply_transposed(matrix: Csr, dense: Tensor, columns: int, *, flipped: bool = False) -> Tensor:
    """Xᵀ D for D (n, h), where X has so many columns; differentiable in D. `flipped`: in memory it is DᵀX."""
    result: Tensor = _multiply_transposed(*matrix, dense, columns, flipped)
    return result


# Shapes of the results, for tracing without data.


@_thin.register_fake
def _(crow, col, values, bits, threshold, scale):
    kept = torch.library.get_ctx().new_dynamic_size()
    return torch.empty_like(crow), col.new_empty(kept), values.new_empty(kept)


@_multiply.register_fake
def _(crow, col, values, dense):
    return dense.new_empty(len(crow) - 1, dense.shape[1])


@_multiply_transposed.register_fake
def _(crow, col, values, dense, columns, flipped):
    return _empty(dense, columns, flipped)


def _empty(dense: Tensor, rows: int, flipped: bool) -> Tensor:
    """For the product: as wide as D."""
    width = dense.shape[1]
    return dense.new_empty(width, rows).t() if flipped else dense.new_empty(rows, width)


# Gradients: each product is the transpose of the other.


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])
    ctx.columns, ctx.flipped = len(inputs[3]), not inputs[3].is_contiguous()


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, None, multiply_transposed(ctx.saved_tensors, grad, ctx.columns, flipped=ctx.flipped)


def _save_transposed(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])


def _backward_transposed(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, None, multiply(ctx.saved_tensors, grad), None, None


_multiply.register_autograd(_backward, setup_context=_save)
_multiply_transposed.register_autograd(_backward_transposed, setup_context=_save_transposed)


def _register_cpu() -> None:
    from gind.features import loops
    from gind.kernels.cpu import run

    @_thin.register_kernel("cpu")
    def _(crow, col, values, bits, threshold, scale):
        # one place more than entries: the loop writes before it knows whether to keep
        new = torch.empty_like(crow), col.new_empty(len(col) + 1), values.new_empty(len(col) + 1)
        arrays = [tensor.numpy() for tensor in (crow, col, values, bits)]
        factor = values.new_tensor(scale).numpy()[()]  # in the precision of the values
        loops.thin()(*arrays, threshold, factor, *(tensor.numpy() for tensor in new))
        kept = int(new[0][-1])
        return new[0], new[1][:kept], new[2][:kept]

    @_multiply.register_kernel("cpu")
    def _(crow, col, values, dense):
        out = dense.new_empty(len(crow) - 1, dense.shape[1])
        run(loops.multiply, out, (crow, col, values), crow, col, values, dense.contiguous(), out)
        return out

    @_multiply_transposed.register_kernel("cpu")
    def _(crow, col, values, dense, columns, flipped):
        out = _empty(dense, columns, flipped)
        kernel, place = functools.partial(loops.multiply_transposed, flipped), out.t() if flipped else out
        run(kernel, out, (crow, col, values), crow, col, values, dense.contiguous(), place)
        return out


if has_numba():
    _register_cpu()
