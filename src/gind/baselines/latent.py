"""The latent space of Geom-GCN: positions of the nodes in a plane, and the pairs that are closest there."""

from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.spatial import KDTree

__all__ = ["LARGEST", "Embedding", "closest_pairs", "embed"]

Embedding = Literal["isomap", "spectral"]
Floats = NDArray[np.float64]

LARGEST = 10_000
"""nodes up to which isomap is computed: its distances take 8 n² bytes"""
_DENSE = 200  # up to so many nodes all eigenvectors are computed: exact, and faster
_DIGITS = 6  # positions are rounded, so that nodes that coincide do so in spite of rounding errors


def embed(adjacency: scipy.sparse.csr_matrix, how: Embedding) -> Floats:
    """Positions (n, 2) of the nodes of an undirected graph, of its symmetric matrix A; their scale has no meaning.

    isomap: classical scaling of the lengths of shortest paths, B = -½ J D² J; components of the graph are as far
    apart as the longest of these, and one more. spectral: the eigenvectors v₂, v₃ of T^(-1/2) (A + τ/n 11ᵀ) T^(-1/2),
    scaled by T^(-1/2), T the row sums, τ the mean degree; τ joins the components (Amini et al., 2013).
    """
    if how not in ("isomap", "spectral"):
        raise ValueError(f"`embedding` must be 'isomap' or 'spectral', got {how!r}.")
    if how == "isomap" and adjacency.shape[0] > LARGEST:
        raise ValueError(
            f"Isomap needs all distances of {adjacency.shape[0]} nodes, and is offered up to {LARGEST}. "
            'Use embedding="spectral".'
        )
    position = (_isomap if how == "isomap" else _spectral)(adjacency)
    position /= np.sqrt(np.mean(position**2)) or 1.0
    position = position.round(_DIGITS)
    # the sign of an eigenvector is arbitrary: its first largest entry is positive
    largest = np.abs(position).argmax(axis=0)
    signs = np.where(position[largest, [0, 1]] < 0, -1.0, 1.0)
    return position * signs + 0.0  # no negative zeros


def closest_pairs(position: Floats, count: int) -> NDArray[np.int64]:
    """The `count` closest pairs i < j, (2, count), or all if there are fewer.

    Pairs at the same distance are taken by j - i, then i: so nodes that coincide share them out evenly.
    """
    n = len(position)
    count = min(count, n * (n - 1) // 2)
    if count == 0:
        return np.empty((2, 0), dtype=np.int64)
    tree = KDTree(position)
    low, high = -1.0, float(np.linalg.norm(np.ptp(position, axis=0))) + 1e-9
    while high - low > 1e-9:
        radius = (low + high) / 2
        inside = (int(tree.count_neighbors(tree, radius)) - n) // 2 if radius >= 0 else 0
        low, high = (low, radius) if inside >= count else (radius, high)
    i, j = tree.query_pairs(max(high, 0.0), output_type="ndarray").T.astype(np.int64)
    distance = np.linalg.norm(position[i] - position[j], axis=1).round(2 * _DIGITS)
    order = np.lexsort((i, j - i, distance))[:count]
    return np.stack([i[order], j[order]])


def _isomap(adjacency: scipy.sparse.csr_matrix) -> Floats:
    squared: Floats = shortest_path(adjacency, method="D", unweighted=True)
    apart = ~np.isfinite(squared)
    squared[apart] = 1 + squared[~apart].max(initial=0.0)
    np.square(squared, out=squared)

    def product(v: Floats) -> Floats:
        result = squared @ (v - v.mean(axis=0))
        return np.asarray((result.mean(axis=0) - result) / 2)

    values, vectors = _leading(product, len(squared), 2)
    return np.asarray(vectors * np.sqrt(values.clip(min=0)))


def _spectral(adjacency: scipy.sparse.csr_matrix) -> Floats:
    n = adjacency.shape[0]
    degree = np.asarray(adjacency.sum(axis=1), dtype=np.float64).ravel()
    tau = max(float(degree.mean()), 1.0) if n else 1.0
    scale = ((degree + tau) ** -0.5)[:, None]

    def product(v: Floats) -> Floats:
        scaled = scale * v.reshape(n, -1)
        return np.asarray(scale * (adjacency @ scaled + tau * scaled.mean(axis=0))).reshape(v.shape)

    return np.asarray(scale * _leading(product, n, 3)[1][:, 1:])


def _leading(product: Any, n: int, count: int) -> tuple[Floats, Floats]:
    """The largest eigenvalues of a symmetric operator, descending, and their vectors; 0 beyond the n-th."""
    if n <= _DENSE:
        dense = product(np.eye(n))
        values, vectors = scipy.linalg.eigh((dense + dense.T) / 2) if n else (np.empty(0), np.empty((0, 0)))
    else:
        operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n)
        values, vectors = eigsh(operator, count, which="LA", v0=start)
    order = np.argsort(-values, kind="stable")[:count]
    short = count - len(order)
    return np.pad(values[order], (0, short)), np.pad(vectors[:, order], ((0, 0), (0, short)))
