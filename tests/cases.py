"""Graphs and layer options that the layer's tests run over."""

from typing import Any, NamedTuple

import numpy as np
import torch
from graphs import Given

import gind
from gind.equilibrium import Solver

SOLVERS: list[Solver] = [
    gind.Picard(),
    gind.Nesterov(),
    gind.HeavyBall(),
    gind.Anderson(),
    gind.NewtonCG(),
    gind.Broyden(),
]


class Case(NamedTuple):
    """A raw graph: what a user would pass."""

    edge_index: torch.Tensor
    num_nodes: int
    weight: torch.Tensor | None = None
    directed: bool = False

    def graph(self) -> gind.Graph:
        return gind.Graph.from_edge_index(self.edge_index, self.num_nodes, self.weight, directed=self.directed)


def _random(seed: int, nodes: int, edges: int) -> torch.Tensor:
    return torch.randint(nodes, (2, edges), generator=torch.Generator().manual_seed(seed))


def _weights(seed: int, edges: int) -> torch.Tensor:
    return 3 * torch.rand(edges, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _both(edge_index: torch.Tensor) -> torch.Tensor:
    return torch.cat([edge_index, edge_index.flip(0)], dim=1)


GRAPHS = {
    "simple": Case(_both(_random(0, 9, 14)), 9),
    "weighted": Case(_random(1, 9, 20), 9, _weights(1, 20)),
    "directed": Case(_random(2, 9, 20), 9, None, True),
    "directed weighted": Case(_random(3, 9, 20), 9, _weights(3, 20), True),
    "multigraph": Case(torch.cat([_random(4, 4, 12), _random(4, 4, 12)], dim=1), 4),
    "disconnected": Case(torch.cat([_random(5, 4, 6), 4 + _random(6, 4, 6)], dim=1), 10),  # 8 and 9 are isolated
    "no edges": Case(torch.empty(2, 0, dtype=torch.long), 5),
    "loops only": Case(torch.arange(3).repeat(2, 1), 4),
    "star": Case(torch.stack([torch.zeros(8, dtype=torch.long), torch.arange(1, 9)]), 9),
}

# options of Diffusion that keep the energy
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "identity": {"activation": "identity"},
    "row": {"scaling": gind.Row()},
    "unscaled": {"scaling": gind.Identity()},
    "wide": {"flux_channels": 7},
    "narrow": {"flux_channels": 2},
    "laplacian": {"regularizer": gind.Laplacian(0.7)},
    "dropout": {"dropout": 0.4},
    "dropout laplacian": {"dropout": 0.4, "regularizer": gind.Laplacian(0.7)},
    "separate": {"injection": "separate", "injection_gain": 3.0},
    "unit injection": {"injection_norm": True, "injection_gain": 2.0},
    "unit injection row": {"injection": "separate", "injection_norm": True, "scaling": gind.Row()},
    "node norm": {"output": "flux", "output_norm": "node", "scaling": gind.Row()},
    "graph norm": {"output_norm": "graph"},
    "bias": {"injection": "separate", "injection_bias": True},
    "doubled": {"flux_gain": 2.0, "regularizer": gind.Laplacian(0.7)},
    "frozen doubled": {"flux_gain": 2.0, "edge_norm": gind.FrozenNorm("layer", "after")},
    "frozen layer": {"edge_norm": gind.FrozenNorm("layer")},
    "frozen instance": {"edge_norm": gind.FrozenNorm("instance", "after")},
    "own ends": {"ends": "own", "injection": "separate"},
    "own ends dropout": {
        "ends": "own",
        "scaling": gind.Identity(),
        "injection": "separate",
        "dropout": 0.4,
        "flux_gain": 2.0,
    },
    "heads inject": {"ends": "own", "injection": "head", "injection_bias": True, "injection_norm": True},
    "own ends frozen": {"ends": "own", "edge_norm": gind.FrozenNorm("instance", "after"), "flux_channels": 5},
    "frozen wide row": {"edge_norm": gind.FrozenNorm("instance"), "flux_channels": 5, "scaling": gind.Row()},
}


def make_layer(
    norm: float = 3.0, channels: int = 3, dtype: torch.dtype = torch.float64, seed: int = 0, **options: Any
) -> gind.Diffusion:
    """A layer with ‖K‖ as given and everything else random."""
    torch.manual_seed(seed)
    layer = gind.Diffusion(channels, **{"throw": "ignore", **options})
    with torch.no_grad():
        layer.K.mul_(norm / torch.linalg.matrix_norm(layer.K, 2))
        if layer.gamma is not None:
            layer.gamma.uniform_(0.5, 2)
        if layer.injection_offset is not None:
            layer.injection_offset.normal_()
    return layer.to(dtype)


def make_input(nodes: int, channels: int = 3, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 + seed)
    return torch.randn(nodes, channels, generator=generator, dtype=torch.float64).to(dtype)


def make_mask(layer: gind.Diffusion, b: torch.Tensor, seed: int = 0) -> torch.Tensor | None:
    """The dropout mask of a layer with dropout, else None."""
    if not layer.dropout:
        return None
    generator = torch.Generator().manual_seed(200 + seed)
    keep = 1 - layer.dropout
    return torch.bernoulli(torch.full_like(b, keep), generator=generator) / keep


def as_numpy(x: torch.Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    return x.detach().double().numpy()


def batched(g: Given, copies: int) -> gind.Graph:
    """Some copies of a graph, their nodes interleaved, and one graph without nodes."""
    index = torch.cat([copies * g.edge_index + k for k in range(copies)], dim=1)
    weight = None if g.edge_weight is None else g.edge_weight.repeat(copies)
    batch = torch.arange(copies).repeat(g.num_nodes)
    return gind.Graph.from_edge_index(index, copies * g.num_nodes, weight, batch, num_graphs=copies + 1)


def make_graph(g: Given, copies: int) -> gind.Graph:
    return gind.Graph.from_edge_index(g.edge_index, g.num_nodes, g.edge_weight) if copies == 0 else batched(g, copies)


def some_graph_index() -> torch.Tensor:
    return torch.randint(20, (2, 50), generator=torch.Generator().manual_seed(0))


def some_graph() -> gind.Graph:
    return gind.Graph.from_edge_index(
        some_graph_index(), 20, torch.rand(50, generator=torch.Generator().manual_seed(1))
    )
