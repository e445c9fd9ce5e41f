"""`Elimination`: a preconditioner for strong K on graphs that are nearly trees, such as chains.

Where the flux is nearly linear (σ' ≈ 1) the Hessian is I + L̂ ⊗ KᵀK with L̂ = ĜᵀwĜ. In the eigenvectors of KᵀK it
falls apart into one sparse system (I + λ_k L̂)u = r per channel, which is solved by elimination. On a chain, where a
step of any other method carries a signal over one edge, this carries it to the end.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import splu
from torch import Tensor

from gind.diffusion.map import DiffusionEnergy
from gind.equilibrium import Energy, Preconditioner
from gind.equilibrium.energy import Map

__all__ = ["Elimination"]


@final
@dataclasses.dataclass(frozen=True)
class Elimination(Preconditioner):
    """M = I + L̂ ⊗ (max ωg KᵀK + 2η), the largest Hessian there can be, its inverse by sparse elimination.

    Eigenvalues of KᵀK within a factor `ratio` share one factorization, that of their geometric mean. Time and memory
    are those of the fill-in: little on trees and small graphs, too much on large graphs with many cycles.
    """

    ratio: float = 1.5

    def __post_init__(self) -> None:
        if not isinstance(self.ratio, int | float) or not self.ratio > 1:
            raise ValueError(f"`ratio` must be a number above 1, got {self.ratio!r}.")

    def build(self, energy: Energy) -> Map:
        """u ↦ M⁻¹u, computed in float64."""
        if not isinstance(energy, DiffusionEnergy):
            raise TypeError(f"Elimination is for the energy of a Diffusion, got {type(energy).__name__}.")
        if energy.edges is not energy.graph:
            raise ValueError('Elimination needs one K for both ends of an edge, got `ends="own"`.')
        with torch.no_grad():
            values, vectors = torch.linalg.eigh(energy.K.double().T @ energy.K.double())
        laplacian = _laplacian(energy)
        systems = [(group, _factorize(laplacian, level)) for group, level in _groups(values, self.ratio)]

        def inverse(u: Tensor) -> Tensor:
            if u.requires_grad:
                raise ValueError("Elimination has no gradient of its own steps. Use `adjoint=Implicit()`.")
            channels = (u.double() @ vectors).cpu().numpy()
            for group, solve in systems:
                channels[:, group] = solve(channels[:, group])
            return energy.project((torch.from_numpy(channels).to(u.device) @ vectors.T).to(u.dtype))

        return inverse


def _laplacian(energy: DiffusionEnergy) -> Callable[[float], Any]:
    """λ ↦ I + (λ max ωg + 2η)/(1 - p) s GᵀwG s, (n, n); max ωg graph by graph."""
    graph, n = energy.graph, energy.graph.num_nodes
    weight = torch.ones_like(graph.tail, dtype=torch.float64) if graph.weight is None else graph.weight
    tail, head, w = (x.cpu().numpy() for x in (graph.tail, graph.head, weight))
    gradient = sparse.csr_array(
        (np.tile([-1.0, 1.0], len(tail)), (np.arange(len(tail)).repeat(2), np.stack([tail, head], axis=1).ravel())),
        shape=(len(tail), n),
    )
    s = sparse.diags_array(energy.s.double().cpu().numpy().ravel())
    strength = energy.strength if graph.batch is None else energy.strength[graph.batch[graph.tail]]
    flow = strength.expand(len(tail)).cpu().numpy()

    def at(level: float) -> Any:
        scale = sparse.diags_array(w * (level * flow + 2 * energy.eta) / energy.keep)
        return sparse.csc_array(sparse.eye_array(n) + s @ gradient.T @ scale @ gradient @ s)

    return at


def _factorize(laplacian: Callable[[float], Any], level: float) -> Callable[[Any], Any]:
    # symmetric and positive definite: no pivoting, and an order for the pattern of A + Aᵀ
    factors = splu(laplacian(level), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    solve: Callable[[Any], Any] = factors.solve
    return solve


def _groups(values: Tensor, ratio: float) -> list[tuple[slice, float]]:
    """Ascending eigenvalues as ranges within a factor `ratio`, each with its geometric mean.

    What is below 10⁻³ counts as that: ‖L̂‖ is about 1, so I is all that matters there.
    """
    levels = values.clamp_min(1e-3).tolist()
    groups, first = [], 0
    for number, level in enumerate([*levels, float("inf")]):
        if level > ratio * levels[first]:
            groups.append((slice(first, number), float(np.sqrt(levels[first] * levels[number - 1]))))
            first = number
    return groups
