"""Generated graphs have the sizes asked for, and all that is compared computes the same."""

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from cli_cases import write_graph, write_molecules

from gind.bench import SHAPES, BenchError, CaseRequest, Shape, differences, make_graph, reference_kernels
from gind.bench.epoch import Entrant, epoch
from gind.bench.interleave import once
from gind.bench.layer import OURS, make_iteration
from gind.bench.measures import MEASURES
from gind.bench.memory import peak_bytes
from gind.bench.published import PUBLISHED, store
from gind.bench.shapes import make_dataset
from gind.experiments.setup import build_model
from gind.kernels import implementation, onecall
from gind.train import FitOptions, implicit_parameters

TEXAS = CaseRequest("texas", True, 16)


@pytest.mark.parametrize("shape", [SHAPES["texas"], SHAPES["cora"], Shape(40, 500)], ids=str)
def test_a_generated_graph_has_its_shape(shape: Shape) -> None:
    graph = make_graph(shape)
    assert (graph.num_nodes, graph.num_edges) == (shape.nodes, shape.edges)
    again = make_graph(shape)
    assert torch.equal(graph.tail, again.tail)
    assert torch.equal(graph.head, again.head)


def test_generated_data_is_as_dense_as_asked_for() -> None:
    shape = SHAPES["cora"]
    dataset = make_dataset("cora", shape)
    x = dataset.graphs[0].x
    assert x.shape == (shape.nodes, shape.features)
    assert len(x.values()) / x.numel() == pytest.approx(shape.density, rel=0.1)
    assert dataset.num_classes == shape.classes


@pytest.mark.parametrize("measure", MEASURES)
def test_contenders_compute_the_same(measure: str) -> None:
    contenders = MEASURES[measure](TEXAS.open())
    assert contenders[0].name == (PUBLISHED if measure == "published epoch" else OURS)
    assert len({contender.name for contender in contenders}) == len(contenders)
    far = differences(contenders, [once(contender) for contender in contenders])
    assert measure == "published epoch" or any(difference is not None for difference in far)
    assert all(difference is None or difference < 1e-3 for difference in far), far
    # a second time the same: nothing is trained on from round to round
    for first, second in zip(once(contenders[0]), once(contenders[0]), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_reference_runs_no_fused_kernel(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a fused kernel was called")

    case = TEXAS.open()
    serving = importlib.import_module(implementation())
    for name in ("flux", "flux_jvp", "flux_secant", "flux_curve", "flux_vjp"):
        monkeypatch.setattr(serving, name, refuse)
    monkeypatch.setattr(onecall.Layer, "__init__", refuse)
    with pytest.raises(AssertionError, match="a fused kernel was called"):
        once(MEASURES["iteration"](case)[0])
    for contender in MEASURES[measure](case):
        if contender.kernels is reference_kernels:
            once(contender)


@pytest.mark.parametrize("shape", ["texas", "cora", "squirrel"])
def test_the_published_profile_scores_like_the_published_model(shape: str) -> None:
    case = CaseRequest(shape, True, 8).open()
    stored, options = store(case)
    spec = case.request.spec(PUBLISHED)
    ours, data = build_model(spec, case.dataset), case.dataset.graphs[0]
    with torch.no_grad():
        found, expected = (model.eval()(data.x, data.edge_index) for model in (ours, stored))
        assert (found - expected).norm() < 1e-4 * expected.norm()
    assert options == spec.train
    sizes = [sum(parameter.numel() for parameter in implicit_parameters(model)) for model in (ours, stored)]
    assert sizes[0] == sizes[1] > 0
    losses = [once(contender) for contender in MEASURES["published epoch"](case)]
    assert all(bool(torch.isfinite(loss)) for pair in losses for loss in pair)


def test_a_group_may_bring_models_of_its_own() -> None:
    def zero(case: object) -> tuple[torch.nn.Module, FitOptions]:
        return Zero(), FitOptions()

    contenders = epoch(TEXAS.open(), [Entrant("zero", zero), Entrant("again", zero, same=True)])
    assert [contender.name for contender in contenders] == ["zero", "again"]
    assert differences(contenders, list(map(once, contenders))) == [None, 0.0]


class Zero(torch.nn.Module):
    """Scores that depend on nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = torch.nn.Parameter(torch.zeros(5))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.scores.expand(len(x), -1)


def test_real_data_is_by_name_or_by_path(tmp_path: Path) -> None:
    case = CaseRequest("karate", False, 8).open()
    assert (case.graph.num_nodes, case.graph.num_edges) == (34, 78)
    case = CaseRequest(str(write_graph(tmp_path / "own")), False, 8).open()
    assert (case.graph.num_nodes, case.dataset.num_features) == (30, 3)


def test_what_cannot_be_measured_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"no shape 'coar'\. Did you mean 'cora'"):
        CaseRequest("coar", True)
    with pytest.raises(BenchError, match="at least 1"):
        CaseRequest("cora", True, 0)
    with pytest.raises(BenchError, match="only one graph"):
        CaseRequest("mutag", False, data=write_molecules(tmp_path)).open()


def test_peak_is_that_of_the_tensors_in_use() -> None:
    peak = peak_bytes(_allocate)
    if peak is None:
        pytest.skip("the peak can be measured only on Linux with glibc, and if the kernel allows it")
    assert peak == pytest.approx(64 * 2**20, rel=0.1)  # the system counts pages roughly


def _allocate() -> Callable[[], object]:
    def run() -> None:
        for _ in range(3):  # one after the other
            torch.ones(2**24)

    return run


def test_an_iteration_is_one_application_of_the_map() -> None:
    graph = make_graph(SHAPES["texas"])
    (result,) = make_iteration(graph, 16)(None)
    assert result.shape == (183, 16)
    assert not result.requires_grad
