"""Solves in float32 of inputs that have a constant in common: how many converge, and how many of these do in float64.

python benchmarks/offset.py
"""

import torch

import gind

NODES, EDGES, CHANNELS, LAYERS = 60, 150, 16, 60
NORMS, OFFSETS = (1.5, 2.0, 2.5, 3.0), (0.0, 0.3, 1.0, 3.0)


def layer_of(norm_K: float, seed: int) -> gind.Diffusion:
    torch.manual_seed(seed)
    norm, stop = gind.FrozenNorm("layer", "after"), gind.Stop(1e-4, 5000)
    layer = gind.Diffusion(CHANNELS, scaling=gind.Row(), edge_norm=norm, stop=stop, throw="ignore")
    with torch.no_grad():
        layer.K.mul_(norm_K / torch.linalg.matrix_norm(layer.K, 2))
        assert layer.gamma is not None
        layer.gamma.uniform_(0.5, 2)
    return layer


def main() -> None:
    print("constant  converged  of these not in float64  of")
    for offset in OFFSETS:
        converged = missed = 0
        for norm_K in NORMS:
            for seed in range(LAYERS):
                generator = torch.Generator().manual_seed(seed)
                edges = torch.randint(NODES, (2, EDGES), generator=generator)
                graph = gind.Graph.from_edge_index(edges, NODES)
                layer, b = layer_of(norm_K, seed), offset + 0.02 * torch.randn(NODES, CHANNELS, generator=generator)
                with torch.no_grad():
                    _, solution = layer(b, graph, return_solution=True)
                if solution.converged:
                    converged += 1
                    missed += not gind.certificate(layer, b, graph, solution).holds
        print(f"{offset:8}  {converged:9}  {missed:23}  {len(NORMS) * LAYERS}", flush=True)


if __name__ == "__main__":
    main()
