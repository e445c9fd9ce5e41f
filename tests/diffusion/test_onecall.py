"""Whole solves in one call against the general loops, which define them."""

import dataclasses
from functools import partial
from typing import Any

import pytest
import torch
from cases import batched, make_graph, make_input, make_layer, some_graph, some_graph_index
from graphs import MODEST, Given, givens
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import gind
from gind.diffusion.map import DiffusionEnergy, inner_product
from gind.diffusion.onecall import covered
from gind.equilibrium import GradientReport, Problem, Solution, Status
from gind.kernels import onecall
from gind.kernels.onecall import switched_off

F32, F64 = torch.float32, torch.float64
SOME_BATCH = batched(Given(some_graph_index(), 20, None), 3)
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "row": {"scaling": gind.Row()},
    "unscaled": {"scaling": gind.Identity()},
    "wide": {"flux_channels": 19},
    "dropout": {"dropout": 0.4},
    "before": {"edge_norm": gind.FrozenNorm("instance", "before")},
    "after": {"edge_norm": gind.FrozenNorm("layer", "after"), "dropout": 0.2},
    "own ends": {"ends": "own", "injection": "head", "head_norm": 0.5},
    "own ends, wide": {"ends": "own", "flux_channels": 19, "dropout": 0.4},
    "own ends, frozen": {"ends": "own", "edge_norm": gind.FrozenNorm("instance", "before"), "flux_gain": 0.5},
    "picard": {"solver": gind.Picard()},
    "nesterov": {"solver": gind.Nesterov()},
    "newton": {"solver": gind.NewtonCG()},
    "linear": {"activation": "identity"},
    "linear, own ends": {"activation": "identity", "ends": "own", "dropout": 0.4},
}


def used(fn: DiffusionEnergy) -> bool:
    return "_layer" in fn.__dict__


def bind(layer: gind.Diffusion, b: Tensor, graph: gind.Graph) -> DiffusionEnergy:
    torch.manual_seed(3)  # the dropout mask
    fn = layer.bind(b, graph)
    assert isinstance(fn, DiffusionEnergy)
    return fn


def both(layer: gind.Diffusion, fn: DiffusionEnergy, z0: Tensor | None = None) -> tuple[Solution, Solution]:
    """In one call, and by the general loop."""
    with torch.no_grad():
        one = layer.solve(fn, z0)
        assert used(fn)
        with switched_off():
            return one, layer.solve(dataclasses.replace(fn), z0)


def agree(one: Solution, general: Solution, graph: gind.Graph) -> None:
    """The same steps in float64. In float32 rounding decides when a slow solve crosses its tolerance, so there both
    solutions answer to their bounds alone."""
    if one.value.dtype == F64:
        assert one.status is general.status
        assert abs(one.steps - general.steps) <= 1
        if one.steps == general.steps:
            torch.testing.assert_close(one.residual, general.residual, rtol=1e-4, atol=1e-12)
    assert one.value.shape == general.value.shape
    assert one.value.is_contiguous()
    distance = inner_product(graph).norm(one.value - general.value)
    assert bool((distance <= one.bound + general.bound).all())


@MODEST
@given(
    givens(),
    st.sampled_from(sorted(OPTIONS)),
    st.sampled_from([F32, F64]),
    st.sampled_from([0.3, 3.0, 8.0]),
    st.sampled_from([0, 1, 3]),
    st.sampled_from([0, 2, 300]),
    st.booleans(),
)
def test_one_call_agrees_with_the_general_loop(
    g: Given, option: str, dtype: torch.dtype, norm: float, copies: int, max_steps: int, warm: bool
) -> None:
    graph = make_graph(g, copies)
    layer = make_layer(norm, 5, dtype, stop=gind.Stop(1e-4, max_steps), **OPTIONS[option])
    b = make_input(graph.num_nodes, 5, dtype)
    fn = bind(layer, b, graph)
    z0 = fn.project(make_input(graph.num_nodes, 5, dtype, seed=1)) if warm else None
    if option == "newton":
        with torch.no_grad():
            one = layer.solve(fn, z0)
            with switched_off():
                general = layer.solve(dataclasses.replace(fn), z0)
    else:
        one, general = both(layer, fn, z0)
    agree(one, general, graph)
    assert (one.status is Status.CONVERGED) == bool((one.residual <= one.tol).all())
    inner = inner_product(graph)
    with torch.no_grad(), switched_off():
        image = dataclasses.replace(fn)(one.value)
    step, size = inner.norm(one.value - image), inner.norm(image)
    absolute = torch.where(size > 0, one.residual * size, step)  # the relative residual of 0 is of another kind
    assert bool(((absolute - step).abs() <= 1e-3 * step + fn.rounding(one.value)).all())


@MODEST
@given(
    givens(),
    st.sampled_from(["plain", "dropout", "before", "after", "own ends", "own ends, wide", "linear"]),
    st.sampled_from([0.5, 4.0]),
)
def test_bounds_hold_against_float64(g: Given, option: str, norm: float) -> None:
    graph = make_graph(g, 2)
    layer = make_layer(norm, 4, F32, stop=gind.Stop(1e-5, 500), **OPTIONS[option])
    fn = bind(layer, make_input(graph.num_nodes, 4, F32), graph)
    with torch.no_grad():
        one = layer.solve(fn)
        exact = dataclasses.replace(
            fn,
            K=fn.K.double(),
            C=fn.C.double(),
            s=fn.s.double(),
            mask=None if fn.mask is None else fn.mask.double(),
            gains=type(fn.gains)(*(None if gain is None else gain.double() for gain in fn.gains)),
        )
        with switched_off():
            true = gind.fixed_point(
                exact,
                one.value.double(),
                solver=gind.Nesterov(),
                stop=gind.Stop(1e-13, 3000),
                throw="ignore",
                inner=inner_product(graph),
            )
    distance = inner_product(graph).norm(one.value.double() - true.value)
    assert used(fn)
    assert bool((distance <= one.bound + true.bound).all())


@MODEST
@given(
    givens(),
    st.sampled_from(["plain", "row", "wide", "dropout", "before", "after", "own ends", "own ends, frozen"]),
    st.sampled_from([0, 2]),
)
def test_gradients_agree_with_the_general_loop(g: Given, option: str, copies: int) -> None:
    graph = make_graph(g, copies)
    tight: dict[str, Any] = {"stop": gind.Stop(1e-11, 1000), "adjoint": gind.Implicit(gind.Stop(1e-11))}
    layer = make_layer(2.0, 5, F64, **tight, **OPTIONS[option])
    b = make_input(graph.num_nodes, 5).requires_grad_()

    def gradients() -> tuple[Tensor, ...]:
        torch.manual_seed(3)
        out = layer(b, graph)
        return torch.autograd.grad((out * make_input(graph.num_nodes, 5, seed=2)).sum(), [b, *layer.parameters()])

    one = gradients()
    with switched_off():
        general = gradients()
    for a, c in zip(one, general, strict=True):
        torch.testing.assert_close(a, c, rtol=1e-7, atol=1e-8)


def test_gradient_against_finite_differences() -> None:
    graph = some_graph()
    layer = make_layer(2.0, 3, F64, stop=gind.Stop(1e-12, 1000), adjoint=gind.Implicit(gind.Stop(1e-12)))
    b = make_input(20, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda b, K: torch.func.functional_call(layer, {"K": K}, (b, graph)), (b, layer.K))


@pytest.mark.parametrize("option", ["plain", "own ends", "own ends, wide", "linear", "linear, own ends"])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_edge_loops_of_both_kinds(dtype: torch.dtype, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In C, where it serves, and numba's."""
    graph, layer = SOME_BATCH, make_layer(3.0, 5, dtype, **OPTIONS[option]).eval()
    fn = bind(layer, make_input(60, 5, dtype), graph)
    one, general = both(layer, fn)
    monkeypatch.setattr(onecall, "address", lambda name, dtype: 0)
    numba, _ = both(layer, fn)
    agree(numba, general, graph)
    agree(numba, one, graph)
    u = make_input(60, 5, dtype, seed=1)
    with torch.no_grad():
        product = fn.hessian(one.value)(u)
        with switched_off():
            torch.testing.assert_close(product, fn.hessian(one.value)(u))


@pytest.mark.parametrize("dtype", [F32, F64])
def test_report_of_the_backward_solve(dtype: torch.dtype) -> None:
    graph = some_graph()
    layer = make_layer(3.0, 4, dtype)
    fn = bind(layer, make_input(20, 4, dtype), graph)
    z, g = make_input(20, 4, dtype, seed=1), make_input(20, 4, dtype, seed=2)
    problem, reports = Problem(fn, inner_product(graph)), [GradientReport(), GradientReport()]
    one = gind.Implicit().solve(problem, z, z, g, reports[0])
    with switched_off():
        general = gind.Implicit().solve(problem, z, z, g, reports[1])
    assert reports[0].status is reports[1].status is Status.CONVERGED
    assert abs(reports[0].steps - reports[1].steps) <= 1
    assert (one - general).norm() <= 2e-6 * g.norm()


@pytest.mark.parametrize("dtype", [F32, F64])
def test_zero_is_found_at_once(dtype: torch.dtype) -> None:
    layer = make_layer(3.0, 4, dtype)
    for graph in (some_graph(), gind.Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 0)):
        fn = bind(layer, torch.zeros(graph.num_nodes, 4, dtype=dtype), graph)
        one, general = both(layer, fn)
        assert (one.status, one.steps) == (general.status, general.steps) == (Status.CONVERGED, 0)
        assert not one.value.any()


def test_zero_is_reached_from_elsewhere() -> None:
    layer = make_layer(3.0, 4, F32, stop=gind.Stop(1e-5, 500))
    fn = bind(layer, torch.zeros(20, 4), some_graph())
    one, general = both(layer, fn, make_input(20, 4, F32))
    agree(one, general, fn.graph)
    assert one.status is Status.CONVERGED


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_bad_values_are_seen(value: float) -> None:
    layer = make_layer(3.0, 4)
    fn = bind(layer, make_input(20, 4), some_graph())
    C = fn.C.detach().clone()
    C[int(fn.graph.tail[0]), 1] = value
    one, general = both(layer, dataclasses.replace(fn, C=C))
    assert one.status is general.status
    assert one.status is Status.NONFINITE or value == torch.inf
    assert one.steps == general.steps


@pytest.mark.parametrize("norm", [0.9, 6.0])
def test_rounding_errors_end_a_solve(norm: float) -> None:
    layer = make_layer(norm, 4, F32, stop=gind.Stop(0.0, 5000))
    fn = bind(layer, make_input(60, 4, F32), SOME_BATCH)
    one, general = both(layer, fn)
    assert one.status is general.status is Status.STALLED
    distance = inner_product(fn.graph).norm(one.value - general.value)
    assert bool((distance <= one.bound + general.bound).all())


def test_problems_calm_down_at_the_same_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without patience a heavy ball goes on as Nesterov at the first step that brings no new minimum."""
    b = make_input(60, 6, F64) * torch.tensor([0.1, 1.0, 10.0]).repeat(20)[:, None]
    fn = bind(layer := make_layer(30.0, 6, F64, stop=gind.Stop(1e-8, 3000)), b, SOME_BATCH)
    ends = []
    for patience in (1.0, 1e6):
        monkeypatch.setattr(
            "gind.equilibrium.solvers.heavy_ball._patience", partial(torch.full_like, fill_value=patience)
        )
        one, general = both(layer, fn)
        agree(one, general, fn.graph)
        ends.append(one.steps)
    assert ends[0] != ends[1]


@pytest.mark.parametrize("dtype", [F32, F64])
def test_the_heavy_ball_is_faster_than_nesterov(dtype: torch.dtype) -> None:
    steps = []
    for solver in (gind.HeavyBall(), gind.Nesterov()):
        layer = make_layer(6.0, 6, dtype, stop=gind.Stop(1e-4, 500), solver=solver)
        one, _ = both(layer, bind(layer, make_input(60, 6, dtype), SOME_BATCH))
        assert one.status is Status.CONVERGED
        steps.append(one.steps)
    assert steps[0] < 0.8 * steps[1]


def test_a_problem_does_not_see_the_others() -> None:
    """Bit for bit: a graph in a batch, and alone."""
    index = some_graph_index()
    batch = batched(Given(index, 20, None), 3)
    layer = make_layer(3.0, 5, F32, stop=gind.Stop(1e-4, 500))
    b = make_input(60, 5, F32) * torch.tensor([0.1, 1.0, 10.0]).repeat(20)[:, None]
    with torch.no_grad():
        together = layer.solve(layer.bind(b, batch))
        for k in range(3):
            alone = layer.solve(layer.bind(b[k::3], gind.Graph.from_edge_index(index, 20)))
            assert torch.equal(alone.value, together.value[k::3])
            assert torch.equal(alone.residual[0], together.residual[k])


def test_the_number_of_threads_does_not_matter() -> None:
    graph = some_graph()
    layer, b = make_layer(3.0, 40, F32), make_input(20, 40, F32)
    before, ends = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            fn = bind(layer, b, graph)
            with torch.no_grad():
                ends.append(layer.solve(fn).value)
            assert used(fn)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*ends)


@pytest.mark.parametrize(
    "options",
    [
        {"regularizer": gind.Laplacian(0.5)},
        {"solver": gind.Anderson()},
        {"adjoint": gind.Unrolled()},
    ],
    ids=str,
)
def test_what_is_not_covered_takes_the_general_path(options: dict[str, Any]) -> None:
    layer = make_layer(1.0, 4, **options)
    fn = bind(layer, make_input(20, 4), some_graph())
    solution = layer.solve(fn)
    assert solution.status is Status.CONVERGED
    assert not used(fn)


@pytest.mark.parametrize("option", ["plain", "dropout", "before", "after", "own ends", "own ends, frozen", "linear"])
def test_hessian_products_agree(option: str) -> None:
    layer = make_layer(3.0, 5, **OPTIONS[option])
    fn = bind(layer, make_input(20, 5), some_graph())
    z, u = fn.project(make_input(20, 5, seed=1)), fn.project(make_input(20, 5, seed=2))
    with torch.no_grad():
        one = fn.hessian(z)(u)
        assert used(fn)
        with switched_off():
            torch.testing.assert_close(one, fn.hessian(z)(u))
    product = fn.hessian(z)(u.requires_grad_())
    assert product.requires_grad
    torch.testing.assert_close(product.detach(), one)


def test_what_is_recorded_for_a_gradient_goes_step_by_step() -> None:
    fn = bind(make_layer(2.0, 5), make_input(20, 5), some_graph())
    assert not covered(fn)
    with torch.no_grad():
        assert covered(fn)
