"""The published profile in an epoch: our layer with the published options, and the published model, edges stored."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from gind.bench.case import Case
from gind.bench.edge_storing import EdgeStoring, Settings, store_edges
from gind.experiments import Spec
from gind.experiments.setup import build_model
from gind.graph import Graph
from gind.models import GIND
from gind.train import FitOptions

__all__ = ["PUBLISHED", "store"]

PUBLISHED = "gind-published"


def store(case: Case) -> tuple[nn.Module, FitOptions]:
    """The published model with the initial weights of ours; features dense, edges stored before time counts."""
    spec = case.request.spec(PUBLISHED)
    ours = build_model(spec, case.dataset)
    assert isinstance(ours, GIND)
    model = EdgeStoring(case.dataset.num_features, case.channels, case.dataset.num_classes, _settings(spec))
    model.load_state_dict(ours.state_dict())
    data = case.dataset.graphs[0]
    edges, _ = store_edges(data.edge_index, case.graph.num_nodes, self_loops=True, directed=ours.directed)
    s = spec.model_options["scaling"].vector(Graph.from_data(data, directed=ours.directed))[:, None]
    x = data.x.to_dense() if data.x.is_sparse_csr else data.x
    return _Stored(model, x, edges, s), spec.train


class _Stored(nn.Module):
    """The model with its inputs at hand."""

    inputs: Callable[[], tuple[Tensor, ...]]

    def __init__(self, model: EdgeStoring, *inputs: Tensor) -> None:
        super().__init__()
        self.model = model
        self.inputs = lambda: inputs  # a function: copies of this module share what it gives

    def implicit_parameters(self) -> Iterator[nn.Parameter]:
        """Those with the learning rate of implicit layers."""
        return self.model.layers.parameters()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of the nodes."""
        # its regularizer differentiates, also in evaluation
        with torch.inference_mode(False), torch.set_grad_enabled(self.training):
            scores: Tensor = self.model(*self.inputs())
        return scores


def _settings(spec: Spec) -> Settings:
    """What the spec says, in the words of the published model."""
    options: dict[str, Any] = dict(spec.model_options)
    regularizer = options.get("regularizer")
    return Settings(
        alpha=options["alpha"],
        steps=options["stop"].max_steps + options["adjoint"].steps,
        grad=options["adjoint"].steps,
        layers=options.get("layers", 1),
        norm=options["edge_norm"].flavor,
        row=options["scaling"].row,
        separate=options["injection"] == "separate",
        eta=0.0 if regularizer is None else regularizer.eta,
        dropout=options.get("dropout", 0.0),
        flux_dropout=options.get("diffusion_dropout", 0.0),
        mlp=options.get("head", "linear") != "linear",
    )
