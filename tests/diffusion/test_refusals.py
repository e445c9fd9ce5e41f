"""Bad input and bad options: a ValueError or TypeError that says what was expected, what came and what to do."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from cases import GRAPHS, make_input, make_layer
from untyped import untyped

import gind

GRAPH = GRAPHS["star"].graph()
CALLS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "rows": (lambda: make_layer()(make_input(5), GRAPH), ValueError, "9 nodes"),
    "channels": (lambda: make_layer()(make_input(9, 4), GRAPH), ValueError, r"\(nodes, 3\)"),
    "one-dimensional": (lambda: make_layer()(make_input(9)[:, 0], GRAPH), ValueError, "shape"),
    "NaN": (lambda: make_layer()(make_input(9).fill_(torch.nan), GRAPH), ValueError, "NaN"),
    "infinity": (lambda: make_layer()(make_input(9) * torch.inf, GRAPH), ValueError, "infinity"),
    "precision": (lambda: make_layer()(make_input(9).float(), GRAPH), TypeError, "float32"),
    "half": (lambda: make_layer().half()(make_input(9).half(), GRAPH), TypeError, "float16"),
    "integers": (lambda: make_layer()(torch.ones(9, 3, dtype=torch.long), GRAPH), TypeError, "int64"),
    "numpy": (lambda: make_layer()(make_input(9).numpy(), GRAPH), TypeError, "ndarray"),
    "edge_index": (lambda: make_layer()(make_input(9), GRAPHS["star"].edge_index), TypeError, "from_edge_index"),
    "warm start": (lambda: make_layer()(make_input(9), GRAPH, z0=torch.zeros(2, 3)), ValueError, "z0"),
    "no channels": (lambda: gind.Diffusion(0), ValueError, "channels"),
    "float channels": (lambda: untyped(gind.Diffusion)(3.0), TypeError, "channels"),
    "flux_channels": (lambda: gind.Diffusion(3, -1), ValueError, "flux_channels"),
    "activation": (lambda: untyped(gind.Diffusion)(3, activation="relu"), ValueError, "'tanh', 'identity'"),
    "injection": (lambda: untyped(gind.Diffusion)(3, injection="both"), ValueError, "shared"),
    "ends": (lambda: untyped(gind.Diffusion)(3, ends="both"), ValueError, "'alike', 'own'"),
    "heads inject": (lambda: gind.Diffusion(3, injection="head"), ValueError, 'ends="own"'),
    "start of heads": (lambda: gind.Diffusion(3, head_norm=0.5), ValueError, 'ends="own"'),
    "scaling of ends": (lambda: gind.Diffusion(3, ends="own", scaling=gind.Row()), ValueError, r"Symmetric\(\)"),
    "ends without energy": (lambda: gind.Diffusion(3, ends="own", edge_norm=gind.LiveNorm()), ValueError, "FrozenNorm"),
    "ends with a regularizer": (
        lambda: gind.Diffusion(3, ends="own", regularizer=gind.Laplacian(1.0)),
        ValueError,
        "regularizer",
    ),
    "elimination of own ends": (
        lambda: make_layer(ends="own", solver=gind.NewtonCG(preconditioner=gind.Elimination()))(make_input(9), GRAPH),
        ValueError,
        'ends="own"',
    ),
    "output": (lambda: untyped(gind.Diffusion)(3, output="z"), ValueError, "flux"),
    "output norm": (lambda: untyped(gind.Diffusion)(3, output_norm="all"), ValueError, "graph"),
    "a word for a number": (lambda: untyped(gind.Diffusion)(3, K_norm="a"), ValueError, "K_norm"),
    "injection norm": (lambda: untyped(gind.Diffusion)(3, injection_norm="graph"), ValueError, "False, True"),
    "start of K": (lambda: gind.Diffusion(3, K_norm=0.0), ValueError, "K_norm"),
    "ratio": (lambda: gind.Elimination(1.0), ValueError, "ratio"),
    "throw": (lambda: untyped(gind.Diffusion)(3, throw="never"), ValueError, "ignore"),
    "dropout": (lambda: gind.Diffusion(3, dropout=1.0), ValueError, "dropout"),
    "gain": (lambda: gind.Diffusion(3, injection_gain=0.0), ValueError, "injection_gain"),
    "flux gain": (lambda: gind.Diffusion(3, flux_gain=-1.0), ValueError, "flux_gain"),
    "bias": (lambda: gind.Diffusion(3, injection_bias=True), ValueError, '"separate"'),
    "start": (lambda: gind.LiveNorm(start=float("nan")), ValueError, "start"),
    "factor": (lambda: gind.Row(factor=0.0), ValueError, "factor"),
    "init": (lambda: gind.GIND(-1, 3, 2, init="normal"), ValueError, "in_channels"),
    "unknown init": (lambda: untyped(gind.GIND)(2, 3, 2, init="zero"), ValueError, "normal"),
    "depth": (lambda: untyped(gind.GIND)(2, 3, 2, depth="deep"), ValueError, "composition"),
    "alpha": (lambda: gind.Diffusion(3, alpha=0.5), ValueError, r"Picard\(alpha\)"),
    "scaling": (lambda: untyped(gind.Diffusion)(3, scaling="row"), TypeError, "Scaling"),
    "solver": (lambda: untyped(gind.Diffusion)(3, solver=gind.Picard), TypeError, "Solver"),
    "stop": (lambda: untyped(gind.Diffusion)(3, stop=1e-3), TypeError, "Stop"),
    "adjoint": (lambda: untyped(gind.Diffusion)(3, adjoint="implicit"), TypeError, "Adjoint"),
    "edge_norm": (lambda: untyped(gind.Diffusion)(3, edge_norm="layer"), TypeError, "EdgeNorm"),
    "regularizer": (lambda: untyped(gind.Diffusion)(3, regularizer=0.1), TypeError, "Laplacian"),
    "eta": (lambda: gind.Laplacian(-1.0), ValueError, "eta"),
    "flavor": (lambda: untyped(gind.FrozenNorm)("batch"), ValueError, "flavor"),
    "place": (lambda: untyped(gind.LiveNorm)("layer", "inside"), ValueError, "place"),
    "orientation": (lambda: make_layer(scaling=gind.OutDegree())(make_input(9), GRAPH), ValueError, "directed=True"),
}


@pytest.mark.parametrize("name", CALLS)
def test_refusals_say_what_to_do(name: str) -> None:
    call, kind, words = CALLS[name]
    with pytest.raises(kind, match=words):
        call()


def test_unconverged_solves_say_so() -> None:
    layer, b = make_layer(30.0, stop=gind.Stop(1e-12, 3)), make_input(9)
    layer.throw = "warn"
    with pytest.warns(gind.ConvergenceWarning, match="3 steps"):
        _, solution = layer(b, GRAPH, return_solution=True)
    assert solution.status is gind.Status.MAX_STEPS
    layer.throw = "raise"
    with pytest.raises(gind.ConvergenceError, match="residual"):
        layer(b, GRAPH)


def test_nan_in_the_parameters_stops_at_once() -> None:
    layer = make_layer(stop=gind.Stop(1e-8, 500), solver=gind.Picard(0.5))
    layer.throw = "raise"
    with torch.no_grad():
        layer.K[0, 0] = torch.nan
    with pytest.raises(gind.ConvergenceError, match="not finite at step 0"):
        layer(make_input(9), GRAPH)
