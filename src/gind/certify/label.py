"""When the predicted label is provably that of the exact equilibrium."""

import torch
from torch import Tensor, nn

from gind.certify.certificate import certificate
from gind.diffusion import Diffusion
from gind.equilibrium import Solution
from gind.graph import Graph

__all__ = ["proven_labels"]


def proven_labels(layer: Diffusion, head: nn.Linear, b: Tensor, graph: Graph, solution: Solution) -> Tensor:
    """(n,) bool: whether no exact equilibrium could give node i another label, for scores W out_i + c.

    out_i is off by at most δ_i = s_i ‖Z - Z*‖ (s_i = 1 unless the scaling is of rows), and ‖Z - Z*‖ is bounded by the
    certificate. So the label a of the largest score is proven if for every other label k

        (W_a - W_k) out_i + c_a - c_k  >  ‖W_a - W_k‖ δ_i.

    Computed in float64. Not for a normalized output, whose distance to the exact one is not bounded this way.
    """
    if layer.output_norm:
        raise ValueError("Labels of a layer with a normalized output cannot be proven by its bound.")
    with torch.no_grad():
        b, z = b.detach().double(), solution.value.detach().double()
        s = layer.scaling.vector(graph).double()
        row = layer.scaling.row
        out = s[:, None] * z if row else z
        out = b + out if layer.output == "sum" else out
        distance = certificate(layer, b, graph, solution).distance
        delta = distance[graph.batch] if graph.batch is not None else distance.expand(graph.num_nodes)
        delta = s * delta if row else delta
        W = head.weight.detach().double()
        scores = out @ W.T + (0 if head.bias is None else head.bias.detach().double())
        best, label = scores.max(dim=1)
        spread = torch.cdist(W, W)[label] * delta[:, None]
        margin = best[:, None] - scores - spread
        # a label is no rival of itself
        return margin.scatter(1, label[:, None], 1.0).amin(dim=1) > 0
