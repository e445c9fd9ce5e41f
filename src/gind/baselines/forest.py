"""Solves with I - cS on graphs without cycles, by elimination from the leaves to the roots.

S ≥ 0, so for c·ρ(S) < 1 this is an M-matrix, and without cycles nothing fills in. What enters at one node is then
carried to every other by products and quotients of positive numbers: each entry of a solution keeps its leading
digits, however small it is beside the others. The residual of a norm, which conjugate gradients see, says nothing of
entries below the precision times the largest.

Plain PyTorch, a step for each level of the trees, is the definition and serves every device; on the CPU numba takes
over, node by node.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from scipy import sparse
from scipy.sparse import csgraph
from torch import Tensor
from torch.autograd.function import once_differentiable

from gind.baselines.adjacency import Adjacency, adjacency
from gind.graph import Graph
from gind.kernels import has_numba

__all__ = ["Forest", "forest"]


@torch.library.custom_op("gind::forest_eliminate", mutates_args=())
def _eliminate(parent: Tensor, bounds: list[int], own: Tensor, link: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse of what is left of 1 - c own at each node once those below are eliminated; what it carries up."""
    pivot, entry = 1 - own[:, None] * c, link[:, None] * c
    for level in _levels_below(bounds)[::-1]:
        pivot.index_add_(0, parent[level], -entry[level].square() / pivot[level])
    return 1 / pivot, entry / pivot


@torch.library.custom_op("gind::forest_sweep", mutates_args=())
def _sweep(parent: Tensor, bounds: list[int], gain: Tensor, carry: Tensor, rhs: Tensor) -> Tensor:
    z, levels = rhs.clone(), _levels_below(bounds)
    for level in reversed(levels):
        z.index_add_(0, parent[level], carry[level] * z[level])
    z *= gain
    for level in levels:
        z[level] += carry[level] * z[parent[level]]
    return z


def _levels_below(bounds: list[int]) -> list[slice]:
    return [slice(first, last) for first, last in itertools.pairwise(bounds)][1:]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Forest:
    """A symmetric S ≥ 0 without cycles; nodes are numbered level by level, roots first."""

    order: Tensor
    """(n,) the node at each position"""
    bounds: list[int]
    """where levels begin and end"""
    parent: Tensor
    """(n,) the position above; 0 at roots"""
    own: Tensor
    """(n,) S_ii"""
    link: Tensor
    """(n,) S_ij to the parent, 0 at roots"""

    def inverse(self, c: Tensor) -> Callable[[Tensor], Tensor]:
        """X ↦ Z, (n, d) to (n, d), with Z_k = (I - c_k S)⁻¹X_k in channel k; 0 ≤ c_k < 1/ρ(S). Differentiable in X."""
        if c.dtype != self.own.dtype or c.dim() != 1:
            raise ValueError(f"`c` must be a vector of {self.own.dtype}, got {c.dtype} of shape {tuple(c.shape)}.")
        gain, carry = _eliminate(self.parent, self.bounds, self.own, self.link, c)

        def solve(X: Tensor) -> Tensor:
            # compiled code checks no bounds
            if X.dtype != gain.dtype or X.shape != gain.shape:
                raise ValueError(
                    f"`X` must be {gain.dtype} of shape {tuple(gain.shape)}, got {X.dtype} of shape {tuple(X.shape)}."
                )
            z = _sweep(self.parent, self.bounds, gain, carry, X[self.order])
            return torch.empty_like(z).index_copy_(0, self.order, z)

        return lambda X: _solution(X, solve)


def forest(graph: Graph, dtype: torch.dtype) -> Forest | None:
    """D^(-½)(A + I)D^(-½) of a graph as a Forest in a precision, computed once per graph; None if there is a cycle."""
    return graph.keep((forest, dtype), lambda: _build(adjacency(graph, torch.float64), dtype))


def _build(S: Adjacency, dtype: torch.dtype) -> Forest | None:
    n = len(S.crow) - 1
    arrays = tuple(part.cpu().numpy() for part in (S.values, S.col, S.crow))
    matrix = sparse.csr_array(arrays, shape=(n, n))
    matrix.sum_duplicates()
    own = matrix.diagonal()
    links = sparse.csr_array(matrix - sparse.diags_array(own))
    links.eliminate_zeros()
    count, component = csgraph.connected_components(links, directed=False)
    if links.nnz // 2 != n - count:
        return None
    # a node above the first of each component makes one tree of all
    roots = np.unique(component, return_index=True)[1]
    above = sparse.csr_array((np.ones(count), (np.full(count, n), roots)), shape=(n + 1, n + 1))
    links.resize((n + 1, n + 1))
    depth, before = csgraph.dijkstra(links + above, indices=n, unweighted=True, return_predecessors=True)
    order = np.argsort(depth[:n], kind="stable")
    position = np.empty(n + 1, dtype=np.int64)
    position[order], position[n] = np.arange(n), 0
    parents = before[:n][order]
    bounds = np.concatenate([[0], np.bincount(depth[:n].astype(np.int64) - 1).cumsum()]).tolist()
    device = S.values.device
    link = links[order, parents] if n else np.empty(0)  # of an empty selection SciPy makes a sparse array
    return Forest(
        torch.from_numpy(order).to(device),
        bounds,
        torch.from_numpy(position[parents]).to(device),
        torch.from_numpy(own[order]).to(device, dtype),
        torch.from_numpy(link).to(device, dtype),
    )


class _Solution(torch.autograd.Function):
    """A⁻¹X for a symmetric A: on the way back it is A⁻¹ again."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, solve: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.solve = solve
        return solve(X)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:
        return ctx.solve(cotangent), None


_solution: Callable[..., Tensor] = _Solution.apply  # torch gives `apply` no types


@_eliminate.register_fake
def _(parent, bounds, own, link, c):
    return own.new_empty(len(own), len(c)), own.new_empty(len(own), len(c))


@_sweep.register_fake
def _(parent, bounds, gain, carry, rhs):
    return torch.empty_like(rhs)


def _register_cpu() -> None:
    from gind.baselines import forest_loops as loops

    @_eliminate.register_kernel("cpu")
    def _(parent, bounds, own, link, c):
        gain, carry = (own.new_empty(len(own), len(c)) for _ in range(2))
        arrays = (tensor.numpy() for tensor in (own, link, c.contiguous(), gain, carry))
        loops.eliminate()(parent.numpy(), _roots(bounds), *arrays)
        return gain, carry

    @_sweep.register_kernel("cpu")
    def _(parent, bounds, gain, carry, rhs):
        z = rhs.clone(memory_format=torch.contiguous_format)
        arrays = (tensor.numpy() for tensor in (gain.contiguous(), carry.contiguous(), z))
        loops.sweep()(parent.numpy(), _roots(bounds), *arrays)
        return z


def _roots(bounds: list[int]) -> int:
    return bounds[min(1, len(bounds) - 1)]


if has_numba():
    _register_cpu()
