"""How smooth the scores of a model are over the edges: near 0, neighbors cannot be told apart (over-smoothing)."""

import math
import warnings

import torch
from torch import Tensor, nn

from gind.equilibrium import ConvergenceWarning
from gind.graph import Graph, Symmetric, gradient
from gind.train import Part, call

__all__ = ["dirichlet_energy", "score_energy"]


def dirichlet_energy(y: Tensor, graph: Graph) -> float:
    """‖√w ĜY‖² / ‖Y‖² of Y (n, c) with Ĝ = G diag((2d)^(-1/2)), d the weights at a node + 1: in [0, 1]; 0 for Y = 0."""
    y = y.double()
    size = float(y.square().sum())
    differences = gradient(Symmetric().vector(graph)[:, None] * y, graph)
    squares = differences.square().sum(1)
    energy = squares.sum() if graph.weight is None else graph.weight @ squares
    return float(energy) / size if size > 0 else 0.0


def score_energy(model: nn.Module, part: Part) -> float | None:
    """The Dirichlet energy of the scores that a model gives to all nodes of one graph; None if they are not finite."""
    model.eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate of the run says it
        scores = call(model, part)
    energy = dirichlet_energy(scores, Graph.from_edge_index(part.data.edge_index, num_nodes=part.data.num_nodes))
    return energy if math.isfinite(energy) else None
