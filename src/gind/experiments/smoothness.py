"""How much the predictions for neighbors differ: near 0, a model cannot tell them apart (over-smoothing)."""

import math
import warnings

import torch
from torch import Tensor, nn

from gind.equilibrium import ConvergenceWarning
from gind.graph import Graph, gradient
from gind.train import Part, call

__all__ = ["dirichlet_energy", "prediction_energy"]


def dirichlet_energy(p: Tensor, graph: Graph) -> float:
    """Σ_e w_e ½‖p_i - p_j‖² / Σ_e w_e over the edges e = {i, j}, for probabilities p (n, classes); 0 without edges.

    In [0, 1]: 0 if neighbors are given the same, 1 if each is given another class for sure. Neither the size of scores
    nor the degrees of nodes count, so what is constant has none.
    """
    squares = gradient(p.double(), graph).square().sum(1) / 2
    weight = torch.ones_like(squares) if graph.weight is None else graph.weight.double()
    total = float(weight.sum())
    return float(weight @ squares) / total if total > 0 else 0.0


def prediction_energy(model: nn.Module, part: Part) -> float | None:
    """The Dirichlet energy of the predicted classes of all nodes of one graph; None if they are not finite."""
    model.eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate of the run says it
        scores = call(model, part).double()
    data = part.data
    graph = Graph.from_edge_index(data.edge_index, data.num_nodes, data.get("edge_weight"))
    energy = dirichlet_energy(scores.softmax(dim=1), graph)
    return energy if math.isfinite(energy) else None
