"""The layer written out in NumPy with dense float64 matrices, from the equations: the oracle of the layer's tests.

It shares no code with the library: edges come from a dictionary, the minimizer from a dense Newton method.
"""

import dataclasses
from typing import Any

import numpy as np
from cases import as_numpy

import gind

Array = np.ndarray[Any, np.dtype[np.float64]]


def edges_of(edge_index: Array, weight: Array | None, directed: bool) -> tuple[list[tuple[int, int]], Array]:
    """Edges and weights by the rules of the library: pairs in both directions are averaged, repeats add up."""
    weights = np.ones(edge_index.shape[1]) if weight is None else weight
    pairs = [(int(i), int(j)) for i, j in edge_index.T]
    if directed:
        kept = [(pair, w) for pair, w in zip(pairs, weights, strict=True) if pair[0] != pair[1]]
        return [pair for pair, _ in kept], np.array([w for _, w in kept])
    sums: dict[tuple[int, int], list[float | None]] = {}
    for (i, j), w in zip(pairs, weights, strict=True):
        if i != j:
            entry = sums.setdefault((min(i, j), max(i, j)), [None, None])
            entry[int(i > j)] = (entry[int(i > j)] or 0.0) + w
    given = {pair: [w for w in entry if w is not None] for pair, entry in sums.items()}
    return list(given), np.array([sum(ws) / len(ws) for ws in given.values()])


@dataclasses.dataclass
class Oracle:
    """E, ∇E and the minimizer of one layer on one graph."""

    G: Array  # Ĝ, (m, n)
    w: Array
    K: Array
    ends: list[tuple[Array, Array]]  # the (m, n) matrices that make up Ĝ, each with its K: v = Σ G_e z K_eᵀ + V0
    V0: Array  # Ĝ B, (m, H)
    omega: Array
    gain: Array
    linear: bool
    eta: float
    support: Array  # 1 where the dropout mask keeps a coordinate
    keep: float

    def v(self, z: Array) -> Array:
        return self.gain * (sum((G @ z @ K.T for G, K in self.ends), start=self.V0))

    def energy(self, z: Array) -> float:
        v = self.v(z)
        primitive = v * v / 2 if self.linear else np.abs(v) + np.log1p(np.exp(-2 * np.abs(v))) - np.log(2)
        edge = (self.w[:, None] * self.omega / self.gain * primitive).sum()
        smooth = self.eta * (self.w[:, None] * (self.G @ z) ** 2).sum()
        return float((z * z).sum() / 2 + (edge + smooth) / self.keep)

    def f(self, z: Array) -> Array:
        v = self.v(z)
        sigma = v if self.linear else np.tanh(v)
        flux = sum((G.T @ (self.w[:, None] * self.omega * sigma) @ K for G, K in self.ends), start=0 * z)
        return -self.support * (flux + 2 * self.eta * self.G.T @ (self.w[:, None] * (self.G @ z))) / self.keep

    def hessian(self, z: Array) -> Array:
        n, h = z.shape
        v = self.v(z)
        slope = np.ones_like(v) if self.linear else 1 / np.cosh(np.clip(v, -300, 300)) ** 2
        A = sum(np.einsum("en,kc->eknc", G, K) for G, K in self.ends).reshape(-1, n * h)
        D = (self.w[:, None] * self.omega * self.gain * slope).reshape(-1)
        H = A.T @ (D[:, None] * A) / self.keep
        H += np.kron(2 * self.eta * self.G.T @ (self.w[:, None] * self.G), np.eye(h)) / self.keep
        s = self.support.reshape(-1)
        dense: Array = np.eye(n * h) + s[:, None] * H * s[None, :]
        return dense

    def minimizer(self) -> Array:
        z = np.zeros_like(self.support)
        for _ in range(2000):
            r = self.f(z) - z
            if np.linalg.norm(r) <= 1e-13 * max(1.0, float(np.linalg.norm(z))):
                break
            d = np.linalg.solve(self.hessian(z), r.reshape(-1)).reshape(z.shape)
            t, start, slope = 1.0, self.energy(z), float((r * d).sum())
            while self.energy(z + t * d) > start - 1e-4 * t * slope + 1e-15 * abs(start) and t > 1e-12:
                t /= 2
            z = z + t * d
        assert np.linalg.norm(self.f(z) - z) <= 1e-9 * max(1.0, float(np.linalg.norm(z)))
        return z


def oracle(
    layer: gind.Diffusion,
    b: Array,
    edge_index: Array,
    weight: Array | None = None,
    directed: bool = False,
    mask: Array | None = None,
) -> Oracle:
    """The oracle of a layer with an energy."""
    n = len(b)
    edges, w = edges_of(edge_index, weight, directed)
    K = as_numpy(layer.K)
    incidence = np.zeros((len(edges), n))
    incident, leaving = np.zeros(n), np.zeros(n)
    for e, (i, j) in enumerate(edges):
        incidence[e, j], incidence[e, i] = 1, -1
        incident[i] += w[e]
        incident[j] += w[e]
        leaving[i] += w[e]
    degree = (leaving if isinstance(layer.scaling, gind.OutDegree) else incident) + 1
    s = np.ones(n) if isinstance(layer.scaling, gind.Identity) else (2 * degree) ** -0.5
    G = incidence * s
    matrix = K if layer.U is None else as_numpy(layer.U)
    offset = np.zeros(len(matrix)) if layer.injection_offset is None else as_numpy(layer.injection_offset)
    injected = (b @ matrix.T + offset) / (s[:, None] if layer.scaling.row else 1)
    ends = [(G, K)]
    if layer.ends == "own":
        if not directed:  # once in each direction
            incidence, G, w = np.concatenate([incidence, -incidence]), np.concatenate([G, -G]), np.concatenate([w, w])
        tails, heads, H = np.minimum(incidence, 0), np.maximum(incidence, 0), layer.flux_channels
        if not isinstance(layer.scaling, gind.Identity):
            tails, heads = (end * (2 * (w @ np.abs(end) + 1)) ** -0.5 for end in (tails, heads))
        ends = [(tails, K[:H]), (heads, K[H:])]
        V0 = heads @ injected[:, -H:] + (0 if layer.injection == "head" else tails @ injected[:, :H])
    else:
        V0 = G @ injected
    if layer.injection_norm:
        mean_square = (w[:, None] * V0**2).sum() / max(w.sum() * V0.shape[1], 1e-300)
        V0 = V0 / np.sqrt(mean_square if mean_square > 0 else 1.0)
    V0 = V0 * layer.injection_gain
    omega, gain = np.ones(layer.flux_channels), np.ones(layer.flux_channels)
    if layer.edge_norm is not None:
        assert layer.gamma is not None
        gamma = np.abs(as_numpy(layer.gamma))
        observed = V0 if layer.edge_norm.place == "before" or layer.activation == "identity" else np.tanh(V0)
        total = (w[:, None] * observed**2).sum(axis=0) / max(w.sum(), 1e-300)
        mean = total.mean() if layer.edge_norm.flavor == "layer" else total
        scale = gamma / np.sqrt(mean + layer.edge_norm.eps)
        omega, gain = (omega, scale) if layer.edge_norm.place == "before" else (scale, gain)
    return Oracle(
        G,
        w,
        K,
        ends,
        V0,
        omega * layer.flux_gain,
        gain,
        layer.activation == "identity",
        layer.regularizer.eta if layer.regularizer is not None else 0.0,
        np.ones((n, K.shape[1])) if mask is None else (mask > 0).astype(float),
        1.0 if mask is None else 1 - layer.dropout,
    )
