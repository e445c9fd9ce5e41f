"""What the layer accepts: every refusal says what was expected, what came and what to do."""

from typing import Any, Literal, get_args

import torch
from torch import Tensor

from gind.diffusion.edge_norm import EdgeNorm
from gind.diffusion.readout import OutputNorm
from gind.diffusion.regularize import Laplacian, StepRegularizer
from gind.equilibrium import Adjoint, Solver, Stop
from gind.equilibrium.options import is_finite
from gind.equilibrium.solution import Throw
from gind.graph import Graph, OutDegree, Scaling
from gind.kernels import Activation

__all__ = ["Ends", "Injection", "Output", "check_input", "check_options"]

Ends = Literal["alike", "own"]
Injection = Literal["shared", "separate", "head"]
Output = Literal["sum", "flux"]


def check_input(b: Any, graph: Any, K: Tensor) -> None:
    """b is a finite n x h matrix in the precision of K, on a graph of n nodes."""
    if not isinstance(graph, Graph):
        raise TypeError(
            f"`graph` must be a gind.Graph, got {type(graph).__name__}. "
            "Build it with `Graph.from_edge_index(edge_index, num_nodes)`, or use GINDConv, which takes an edge_index."
        )
    if not isinstance(b, Tensor):
        raise TypeError(f"`b` must be a tensor of node features, got {type(b).__name__}.")
    if b.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"An equilibrium is solved in float32 or float64, got features of {b.dtype}. Use `.float()` on features "
            "and layer."
        )
    if b.dtype != K.dtype:
        raise TypeError(f"`b` is {b.dtype} but the layer's parameters are {K.dtype}. Use `layer.to(b.dtype)`.")
    if b.dim() != 2 or b.shape[1] != K.shape[1]:
        raise ValueError(f"`b` must have shape (nodes, {K.shape[1]}), got {tuple(b.shape)}.")
    if b.shape[0] != graph.num_nodes:
        raise ValueError(
            f"`b` has {b.shape[0]} rows but the graph has {graph.num_nodes} nodes. Isolated nodes at the end? Pass "
            "`num_nodes=` to `Graph.from_edge_index`."
        )
    if b.device != graph.device:
        raise ValueError(f"`b` is on {b.device} but the graph on {graph.device}. Use `graph.to({str(b.device)!r})`.")
    if not is_finite(b):
        row = int((~torch.isfinite(b)).any(dim=1).nonzero()[0])
        raise ValueError(f"`b` holds NaN or infinity, first at node {row}. Clean the features or the encoder.")


def check_options(layer: Any) -> None:
    """The options of a Diffusion fit together."""
    for name in ("channels", "flux_channels"):
        value = getattr(layer, name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"`{name}` must be an int, got {value!r}.")
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value}.")
    _check_choices(layer)
    required: tuple[tuple[str, type, str], ...] = (
        ("scaling", Scaling, "Symmetric()"),
        ("solver", Solver, "Anderson()"),
        ("stop", Stop, "Stop(1e-5, 200)"),
        ("adjoint", Adjoint, "Implicit()"),
    )
    for name, kind, example in required:
        if not isinstance(getattr(layer, name), kind):
            raise TypeError(f"`{name}` must be a {kind.__name__} such as {example}, got {getattr(layer, name)!r}.")
    if layer.edge_norm is not None and not isinstance(layer.edge_norm, EdgeNorm):
        raise TypeError(f"`edge_norm` must be None or an EdgeNorm such as FrozenNorm(), got {layer.edge_norm!r}.")
    if layer.regularizer is not None and not isinstance(layer.regularizer, Laplacian | StepRegularizer):
        raise TypeError(
            "`regularizer` must be None, a Laplacian(eta), or a StepRegularizer such as Decorrelation(eta), got "
            f"{layer.regularizer!r}."
        )
    _check_numbers(layer)
    _check_ends(layer)


def _check_choices(layer: Any) -> None:
    choices: tuple[object, ...]
    for name, choices in (
        ("activation", get_args(Activation)),
        ("ends", get_args(Ends)),
        ("injection", get_args(Injection)),
        ("output", get_args(Output)),
        ("output_norm", (False, True, *get_args(OutputNorm))),
        ("injection_norm", (False, True)),
        ("injection_bias", (False, True)),
        ("throw", get_args(Throw)),
    ):
        value = getattr(layer, name)
        if value not in choices:
            raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def _check_numbers(layer: Any) -> None:
    if not 0 <= layer.dropout < 1:
        raise ValueError(f"`dropout` must lie in [0, 1), got {layer.dropout}.")
    for name, optional in (("injection_gain", False), ("flux_gain", False), ("K_norm", True), ("head_norm", False)):
        value = getattr(layer, name)
        if optional and value is None:
            continue
        if not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise ValueError(f"`{name}` must be {'None, or ' * optional}positive and finite, got {value!r}.")
    if layer.injection_bias and layer.injection == "shared":
        raise ValueError(
            '`injection_bias` is the bias of U, which `injection="shared"` has not. Use "separate" or "head".'
        )
    if not 0 < layer.alpha <= 1:
        raise ValueError(f"`alpha` must lie in (0, 1], got {layer.alpha}.")
    if layer.alpha != 1 and layer.has_energy:
        raise ValueError(
            f"`alpha` = {layer.alpha} has no effect on an equilibrium that minimizes an energy: there it is a "
            "step size. Use `solver=Picard(alpha)`."
        )
    if layer.solver.needs_energy and not layer.has_energy:
        raise ValueError(
            f"{type(layer.solver).__name__} needs an energy, which {layer.edge_norm or layer.regularizer} takes away. "
            "Use Anderson(), Broyden() or Picard(alpha)."
        )


def _check_ends(layer: Any) -> None:
    if layer.ends == "alike":
        for name, plain in (("injection", layer.injection != "head"), ("head_norm", layer.head_norm == 1)):
            if not plain:
                raise ValueError(f'`{name}` = {getattr(layer, name)!r} tells heads from tails. Use `ends="own"`.')
    elif layer.scaling.row or isinstance(layer.scaling, OutDegree):
        raise ValueError(
            f'With `ends="own"` a node has a degree for each end, and {layer.scaling} needs one. Use Symmetric().'
        )
    elif not layer.has_energy or layer.regularizer is not None:
        raise ValueError(
            f'`ends="own"` is for layers with an energy, without a regularizer; got {layer.edge_norm}, '
            f"{layer.regularizer}. Use FrozenNorm() or none."
        )
