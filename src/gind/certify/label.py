"""When the predicted label is provably that of the exact equilibrium."""

import math

import torch
from torch import Tensor, nn

from gind.certify.certificate import certificate
from gind.diffusion import Diffusion
from gind.equilibrium import Solution
from gind.graph import Graph

__all__ = ["proven_labels"]


def proven_labels(
    layer: Diffusion, head: nn.Linear, b: Tensor, graph: Graph, solution: Solution, labels: Tensor | None = None
) -> Tensor:
    """(n,) bool: whether no exact equilibrium could give node i another label, for scores W out_i + c.

    With `labels` (n,), what some other pass predicted, whether that is the label which is proven.

    out_i is off by at most δ_i = s_i ‖Z - Z*‖ (s_i = 1 unless the scaling is of rows), and ‖Z - Z*‖ is bounded by the
    certificate. So the label a of the largest score is proven if for every other label k

        (W_a - W_k) out_i + c_a - c_k  >  ‖W_a - W_k‖ δ_i.

    An output normalized by node, out_i / r_i with r_i its root mean square, has the same label as r_i times its scores,
    W out_i + r_i c; r_i is off by at most δ_i/√h, so |c_a - c_k|/√h joins ‖W_a - W_k‖. An output normalized by graph
    depends on all nodes and is refused. Computed in float64.
    """
    if layer.output_norm == "graph":
        raise ValueError("Labels of a layer with an output normalized by graph cannot be proven by its bound.")
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
        c = W.new_zeros(len(W)) if head.bias is None else head.bias.detach().double()
        # not by way of W Wᵀ, where the distance of near rows drowns in rounding
        distances = torch.cdist(W, W, compute_mode="donot_use_mm_for_euclid_dist")
        size = torch.ones_like(s)
        if layer.output_norm:
            size = torch.linalg.vector_norm(out, dim=1) / math.sqrt(out.shape[1])
            distances = distances + (c[:, None] - c).abs() / math.sqrt(out.shape[1])
        scores = out @ W.T + size[:, None] * c
        best, label = scores.max(dim=1)
        spread = distances[label] * delta[:, None]
        margin = best[:, None] - scores - spread
        # a label is no rival of itself
        proven = margin.scatter(1, label[:, None], 1.0).amin(dim=1) > 0
        return proven if labels is None else proven & (labels == label)
