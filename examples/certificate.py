"""Solve an equilibrium on a real graph and prove it: scikit-learn's handwritten digits, joined to their neighbors.

Run with `make run`, or `python examples/certificate.py`.
"""

import time

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

import gind
from gind.kernels import implementation


def digits_graph(neighbors: int = 8) -> tuple[torch.Tensor, gind.Graph]:
    """1,797 images of 8 x 8 pixels as node features, each image joined to its nearest ones."""
    images = load_digits().data.astype(np.float32) / 16
    links = kneighbors_graph(images, neighbors).tocoo()
    edge_index = torch.as_tensor(np.stack([links.row, links.col]), dtype=torch.long)
    return torch.as_tensor(images), gind.Graph.from_edge_index(edge_index, len(images))


def main() -> None:
    torch.manual_seed(0)
    x, graph = digits_graph()
    layer = gind.Diffusion(x.shape[1], scaling=gind.Row()).eval()
    print(f"{graph}, {layer.channels} channels, kernels: {implementation()}")
    layer(x, graph)  # the first call compiles the kernels

    x.requires_grad_()
    start = time.perf_counter()
    out, solution = layer(x, graph, return_solution=True)
    solved = time.perf_counter()
    out.square().sum().backward()
    print(f"{solution}\nSolved in {solved - start:.3f} s, exact gradient in {time.perf_counter() - solved:.3f} s.\n")
    print(gind.certificate(layer, x, graph, solution))


if __name__ == "__main__":
    main()
