"""EIGNN against a dense solve in float64."""

import math
from fractions import Fraction
from typing import Any

import pytest
import torch
from graphs import dense_propagation
from torch import Tensor
from torch.testing import assert_close
from training_problems import many_labels, two_blocks

import gind
from gind.baselines.adjacency import adjacency
from gind.baselines.eignn import EIGNN, LinearEnergy
from gind.baselines.forest import forest
from gind.equilibrium import Stop
from gind.experiments.keys import parse
from gind.experiments.models import KINDS, ModelEntry, defaults
from gind.graph import Graph
from gind.train import FitOptions

TIGHT = Stop(1e-12, 1000)
METHODS = ["closed", "iterative"]
ON_TREES = [*METHODS, "elimination"]
EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 2], [1, 2, 3, 4, 5, 3, 5, 2]])  # one self-loop; node 6 is isolated
X = torch.randn(7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
TREE = torch.tensor([[1, 1, 1, 4, 6, 6], [0, 2, 4, 3, 5, 6]])  # two trees, one with a self-loop
WIDE = torch.randn(7, 15, dtype=torch.float64, generator=torch.Generator().manual_seed(2))  # d > 2n: no eigenvectors


def make(method: str, in_channels: int = 5, **options: Any) -> EIGNN:
    torch.manual_seed(0)
    return EIGNN(in_channels, 4, 3, **{"method": method, "stop": TIGHT, **options}).double()


def dense_equilibrium(F: Tensor, x: Tensor, gamma: float, edges: Tensor = EDGES) -> Tensor:
    """Z = γSZg + X by the Kronecker form, everything built from scratch."""
    n, d = x.shape
    S = dense_propagation(edges, n)
    g = F.T @ F / ((F.T @ F).square().sum().sqrt() + 1e-12)
    Z: Tensor = torch.linalg.solve(torch.eye(n * d).double() - gamma * torch.kron(S, g), x.reshape(-1))
    return Z.reshape(n, d)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gamma", [0.3, 0.99])
@pytest.mark.parametrize("x", [X, WIDE], ids=["narrow", "wide"])
def test_equilibrium_is_that_of_a_dense_solve(method: str, gamma: float, x: Tensor) -> None:
    model = make(method, x.shape[1], gamma=gamma)
    with torch.no_grad():
        scores = model(x, EDGES)
        assert_close(scores, dense_equilibrium(model.F, x, gamma) @ model.B.T, atol=1e-9, rtol=0)
    # with gradient another path is taken to the same value
    assert_close(model(x, EDGES), scores, atol=1e-9, rtol=0)


@pytest.mark.parametrize("method", ON_TREES)
@pytest.mark.parametrize("x", [X, WIDE], ids=["narrow", "wide"])
def test_equilibrium_on_trees_is_that_of_a_dense_solve(method: str, x: Tensor) -> None:
    model = make(method, x.shape[1], gamma=0.99)
    with gind.watch() as solutions, torch.no_grad():
        scores = model(x, TREE)
    assert solutions[0].converged
    assert_close(scores, dense_equilibrium(model.F, x, 0.99, TREE).detach() @ model.B.detach().T, atol=1e-9, rtol=0)
    assert_close(model(x, TREE), scores, atol=1e-9, rtol=0)


def test_elimination_knows_what_fades_along_a_chain_to_the_last_digits() -> None:
    n, c, edges = 200, 0.25, torch.stack([torch.arange(199), torch.arange(1, 200)])
    tree = forest(Graph.from_edge_index(edges, n), torch.float64)
    assert tree is not None
    x = torch.zeros(n, 1, dtype=torch.float64)
    x[0] = 1
    z = tree.inverse(torch.tensor([c], dtype=torch.float64))(x)[:, 0].tolist()
    # in fractions: y = D^(-½)z solves (I - cD⁻¹(A + I))y = D⁻¹(D^½x); from the far end, y_i = ratio_i y_(i-1)
    inner, ratio, size = Fraction(c) / 3, Fraction(c) / 2 / (1 - Fraction(c) / 2), Fraction(1)
    ratios = [ratio]
    for _ in range(n - 2):
        ratio = inner / (1 - inner - inner * ratio)
        ratios.append(ratio)
    size = 1 / (1 - Fraction(c) / 2 * (1 + ratios[-1]))
    exact = [float(size)]
    for number, ratio in enumerate(reversed(ratios)):
        size *= ratio
        exact.append(float(size) * (1 if number == n - 2 else math.sqrt(1.5)))
    assert exact[-1] < 1e-200
    assert_close(torch.tensor(z), torch.tensor(exact), rtol=1e-13, atol=0)


@pytest.mark.parametrize(
    ("edges", "x", "normalize", "method"),
    [
        (TREE, X, True, "elimination"),
        (TREE, X, False, "closed"),
        (EDGES, X, True, "closed"),
        (EDGES, WIDE, True, "iterative"),
    ],
)
def test_auto_takes_what_suits_the_graph(edges: Tensor, x: Tensor, normalize: bool, method: str) -> None:
    chosen, auto = (make(name, x.shape[1], normalize=normalize) for name in (method, "auto"))
    with torch.no_grad():
        assert torch.equal(auto(x, edges), chosen(x, edges))


@pytest.mark.parametrize("method", ON_TREES)
def test_normalized_equilibria_have_length_one(method: str) -> None:
    model = make(method, normalize=True)
    model.B.data = torch.eye(5, dtype=torch.float64)
    Z = dense_equilibrium(model.F.detach(), X, 0.8, TREE)
    assert_close(model(X, TREE), Z / Z.norm(dim=1, keepdim=True), atol=1e-9, rtol=0)


@pytest.mark.parametrize("method", ON_TREES)
def test_output_dropout_acts_on_the_channels_of_the_equilibrium_itself(method: str) -> None:
    plain, model = make(method, normalize=True), make(method, normalize=True, output_dropout=0.5)
    for each in (plain, model):
        each.B.data = torch.eye(5, dtype=torch.float64)
    whole, dropped = plain(X, TREE), model(X, TREE)
    kept = dropped != 0
    assert 0 < int(kept.sum()) < kept.numel()
    assert_close(dropped[kept], 2 * whole[kept])
    assert_close(model.eval()(X, TREE), whole)


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("features", [X, WIDE], ids=["narrow", "wide"])
def test_both_methods_give_the_same_scores_and_gradients(encode: bool, features: Tensor) -> None:
    found = []
    for method in METHODS:
        model, x = make(method, features.shape[1], encode=encode), features.clone().requires_grad_()
        scores = model(x, EDGES)
        scores.square().sum().backward()
        found.append([scores, x.grad, *(p.grad for p in model.parameters())])
    for closed, iterative in zip(*found, strict=True):
        assert_close(closed, iterative, atol=1e-9, rtol=1e-8)


@pytest.mark.parametrize("method", ON_TREES)
@pytest.mark.parametrize("kind", ["generic", "equal eigenvalues", "wide"])
@pytest.mark.parametrize("normalize", [False, True])
def test_gradients_are_those_of_finite_differences(method: str, kind: str, normalize: bool) -> None:
    features, edges = WIDE if kind == "wide" else X, TREE if method == "elimination" else EDGES
    model = make(method, features.shape[1], normalize=normalize)
    F = torch.eye(5, dtype=torch.float64) if kind == "equal eigenvalues" else model.F.detach()
    inputs = [t.clone().requires_grad_() for t in (features, F, model.B.detach())]

    def scores(x: Tensor, F: Tensor, B: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(model, {"F": F, "B": B}, (x, edges))
        return result

    assert torch.autograd.gradcheck(scores, inputs, atol=1e-6, fast_mode=True)


def test_gradients_at_the_end_of_a_chain_are_those_of_finite_differences() -> None:
    model, chain = make("auto", 3, normalize=True), torch.stack([torch.arange(79), torch.arange(1, 80)])
    x = torch.zeros(80, 3, dtype=torch.float64)
    x[0] = torch.tensor([1.0, 0.5, -0.3])

    def scores(F: Tensor) -> Tensor:
        result: Tensor = torch.func.functional_call(model, {"F": F}, (x, chain))
        return result[-1]

    with gind.watch() as solutions, torch.no_grad():
        scores(model.F)
    assert 0 < float(solutions[0].value[-1].norm()) < 1e-30
    assert torch.autograd.gradcheck(scores, [model.F], atol=1e-5)


def test_the_energy_is_what_it_says() -> None:
    model, graph = make("iterative", gamma=0.9), Graph.from_edge_index(EDGES, 7)
    g = model.metric().detach()
    eigenvalues, Q = torch.linalg.eigh(g)
    inner = gind.equilibrium.Whole()
    energy = LinearEnergy(0.9, adjacency(graph, torch.float64), Q.T @ g @ Q, eigenvalues, X @ Q, inner)
    z = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(energy.value(z).sum(), z)
    z = z.detach()
    assert_close(z - energy(z), gradient)
    H = torch.stack([energy.hessian(z)(u.reshape(7, 5)).reshape(-1) for u in torch.eye(35, dtype=torch.float64)])
    assert_close(H, H.T)
    spectrum = torch.linalg.eigvalsh(H)
    assert float(spectrum[0]) >= 1 - 1e-12
    assert float(spectrum[-1]) <= float(energy.smoothness) + 1e-12


@pytest.mark.parametrize(("method", "x"), [("closed", X), ("iterative", X), ("iterative", WIDE)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_solves_are_seen_and_their_bound_holds(method: str, x: Tensor, dtype: torch.dtype) -> None:
    model = make(method, x.shape[1], gamma=0.95, stop=Stop(1e-5)).to(dtype)
    with gind.watch() as solutions, torch.no_grad():
        model(x.to(dtype), EDGES)
        Q = torch.eye(15) if x is WIDE else torch.linalg.eigh(model.metric())[1]
    (solution,) = solutions
    assert solution.converged
    assert float(solution.residual) <= 1e-5
    exact = dense_equilibrium(model.F.detach().double(), x.to(dtype).double(), 0.95)
    distance = float((solution.value.double() @ Q.T.double() - exact).norm())
    assert distance <= float(solution.bound) + 1e-14
    assert float(solution.bound) < 1e-3 * float(exact.norm())


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_is_its_graphs(method: str) -> None:
    model = make(method)
    small, x = torch.tensor([[0, 1], [1, 2]]), torch.randn(3, 5, dtype=torch.float64)
    batch = torch.tensor([0] * 7 + [1] * 3)
    with gind.watch() as solutions:
        together = model(torch.cat([X, x]), torch.cat([EDGES, small + 7], dim=1), batch=batch)
    assert solutions[0].residual.shape == (2,)
    assert_close(together, torch.cat([model(X, EDGES), model(x, small)]), atol=1e-9, rtol=0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("features", [X, WIDE], ids=["narrow", "wide"])
def test_sparse_features_give_the_same_scores(method: str, encode: bool, features: Tensor) -> None:
    model, x = make(method, features.shape[1], encode=encode), features * (features > 0)
    assert_close(model(x.to_sparse_csr(), EDGES), model(x, EDGES), atol=1e-9, rtol=0)


def test_the_eigenvectors_of_a_graph_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, edges, sizes = make("closed"), EDGES.clone(), []
    eigh = torch.linalg.eigh

    def counted(matrix: Tensor) -> Any:
        sizes.append(len(matrix))
        return eigh(matrix)

    monkeypatch.setattr(torch.linalg, "eigh", counted)
    with torch.inference_mode():
        model(X, edges)
    model(X, edges).sum().backward()  # what inference mode left in the cache can be used for training
    assert sizes.count(7) == 1
    model.method = "iterative"
    model(X, edges.clone())
    assert sizes.count(7) == 1


@pytest.mark.parametrize("method", METHODS)
def test_training_lowers_the_loss(method: Any) -> None:
    torch.manual_seed(0)
    report = gind.fit(EIGNN(4, 1, 2, method=method), two_blocks(), epochs=10, lr=0.05)
    assert report.history[-1].loss < 0.9 * report.history[0].loss
    assert sum(record.open for record in report.history) == 0


def test_training_on_many_graphs_lowers_the_loss() -> None:
    torch.manual_seed(0)
    report = gind.fit(EIGNN(3, 8, 3, encode=True, dropout=0.1), many_labels(), epochs=6, batch_size=2, lr=0.05)
    assert report.history[-1].loss < 0.9 * report.history[0].loss


@pytest.mark.parametrize("dataset", ["cora", "cornell", "chains"])
def test_defaults_are_keys_of_the_model_or_of_training(dataset: str) -> None:
    keys, options = ModelEntry(EIGNN).keys, dict(defaults("eignn", dataset))
    options.pop("precision", None)  # a key of the data
    model = {k: parse(k, keys[k].type, options.pop(k), KINDS) for k in list(options) if k in keys}
    FitOptions(**options)
    assert isinstance(ModelEntry(EIGNN).for_data("node", 5, 3, model), EIGNN)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"num_layers": 2}, "num_layers"),
        ({"gamma": 1.0}, "gamma"),
        ({"method": "direct"}, "elimination"),
        ({"dropout": 1.0}, "`dropout`"),
        ({"output_dropout": -0.1}, "output_dropout"),
    ],
)
def test_refusals(options: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        EIGNN(5, 4, 3, **options)


def test_elimination_refuses_cycles() -> None:
    with pytest.raises(ValueError, match="without cycles"):
        make("elimination")(X, EDGES)
