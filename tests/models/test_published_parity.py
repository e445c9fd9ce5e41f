"""`gind-published` against the equations of the published code, with every stored edge written out.

The settings of each dataset stand here once more, as published; edges are stored in both directions, in NumPy (values)
and in plain PyTorch (gradients).
"""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from oracle import Array
from torch.testing import assert_close

import gind
from gind.bench.edge_storing import EdgeStoring, Settings, store_edges
from gind.diffusion import Composition
from gind.experiments import make_spec
from gind.experiments.models import model_entry

FEATURES, CLASSES = 5, 3


class Published(NamedTuple):
    """One configuration: the model, its graph and its training."""

    settings: Settings
    self_loops: bool
    hidden: int = 128
    directed: bool = False
    once: bool = False
    gamma: float = 1.0
    task: str = "node"
    lr: tuple[float, float] = (0.0, 0.0)  # implicit, explicit
    decay: tuple[float, float] = (0.0, 0.0)
    epochs: tuple[int, int] = (0, 0)  # and patience


def citation(alpha: float, steps: int, grad: int, eta: float, dropout: float, **more: Any) -> Published:
    settings = Settings(alpha, steps, grad, separate=False, eta=eta, dropout=dropout)
    return Published(settings, self_loops=True, epochs=(500, 100), **more)


def webkb(alpha: float, steps: int, dropout: float, **more: Any) -> Published:
    return Published(Settings(alpha, steps, 4, flux_dropout=dropout), self_loops=False, epochs=(1000, 200), **more)


def wikipedia(alpha: float, **more: Any) -> Published:
    settings = Settings(alpha, 1, 1, layers=3, row=False)
    return Published(settings, False, hidden=256, directed=True, gamma=0.5, epochs=(1000, 200), **more)


def graphs(alpha: float, steps: int, dropout: float, lr: float, epochs: int) -> Published:
    settings = Settings(alpha, steps, 1, layers=3, norm="instance", dropout=dropout, mlp=True, pooled=True)
    return Published(settings, False, hidden=32, task="graph", lr=(lr, lr), epochs=(epochs, 0))


PUBLISHED = {
    "cora": citation(
        0.145, 32, 4, 0.02083326084484297, 0.8, lr=(4.845229737171477e-06, 0.04553302632731857), decay=(1e-5, 1e-5)
    ),
    "citeseer": citation(0.096, 32, 4, 6.9, 0.6, lr=(0.00016624953416853247, 0.022267935152099735), decay=(5e-6, 1e-5)),
    "pubmed": citation(
        0.148, 64, 5, 4.895235961481567, 0.2, lr=(8.038946586130912e-05, 0.013915423904841157), decay=(1e-4, 5e-6)
    ),
    "cornell": webkb(0.01, 36, 0.7, lr=(1.0600404386459695e-06, 0.046418459739577284), decay=(5e-4, 1e-4)),
    "texas": webkb(0.02, 36, 0.5, lr=(1.341243672501185e-06, 0.027634964803478164), decay=(0.0, 5e-4)),
    "wisconsin": webkb(0.07, 32, 0.6, lr=(1.356791943695535e-05, 0.019223951173302053), decay=(0.0, 1e-4)),
    "chameleon": wikipedia(0.56, lr=(3.766686358596707e-06, 0.011730088038640809), decay=(5e-6, 1e-5)),
    "squirrel": wikipedia(0.68, lr=(9.535687388328598e-05, 0.025399687358440556), decay=(1e-5, 0.0)),
    "ppi": Published(
        Settings(0.08, 1, 1, layers=4, row=False),
        self_loops=True,
        hidden=256,
        once=True,
        gamma=0.5,
        task="multilabel",
        lr=(0.004167843424430847, 0.004167843424430847),
        epochs=(8000, 2000),
    ),
    "ptc_mr": graphs(0.1, 16, 0.4, 0.001084415058739539, 1500),
    "mutag": graphs(0.15, 8, 0.2, 0.03288152831370653, 1000),
    "cox2": graphs(0.5, 8, 0.1, 0.004199667776542409, 1500),
    "proteins": graphs(0.5, 16, 0.4, 0.002472941625740211, 1500),
    "nci1": graphs(0.5, 16, 0.0, 0.0010081215757652639, 2000),
}
every_dataset = pytest.mark.parametrize("name", PUBLISHED)


class Tiny(NamedTuple):
    """A graph that has everything that can go wrong, or a batch of three."""

    edge_index: torch.Tensor
    nodes: int
    batch: torch.Tensor | None


def tiny(published: Published) -> Tiny:
    """Node 0 has a loop and neighbors, node 7 only a loop, nodes 8 and 9 nothing; in the batch the third has no edges.

    Directed, node 5 has no edge that leaves, and 1 ⇄ 2 are two edges.
    """
    pairs = [(0, 1), (0, 0), (1, 2), (2, 1), (2, 0), (2, 3), (3, 4), (4, 5), (6, 5), (6, 3), (3, 0), (7, 7)]
    if published.once:
        pairs = [(i, j) for i, j in pairs if i != j]
    batch = None if published.task == "node" else torch.tensor([0, 0, 0, 1, 1, 1, 1, 1, 2, 2])
    if batch is not None:
        pairs = [(i, j) for i, j in pairs if batch[i] == batch[j]]
    index = torch.tensor(pairs).t()
    if not published.directed:
        index = torch.unique(torch.cat([index, index.flip(0)], dim=1), dim=1)
    return Tiny(index, 10, batch)


def make(name: str) -> gind.GIND:
    """The model as `gind train` builds it, in float64, with nothing left at its start value."""
    spec = make_spec({"dataset": name, "model": "gind-published"})
    torch.manual_seed(0)
    model = model_entry("gind-published").for_data(PUBLISHED[name].task, FEATURES, CLASSES, spec.model_options)
    assert isinstance(model, gind.GIND)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter) if "gamma" in key else torch.randn_like(parameter))
    return model.double().eval()


def features() -> torch.Tensor:
    return torch.randn(10, FEATURES, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def arrays(model: gind.GIND) -> dict[str, Array]:
    return {key: value.detach().numpy() for key, value in model.state_dict().items()}


def stored(published: Published, graph: Tiny) -> tuple[list[tuple[int, int]], Array]:
    """Stored edges and s, from the definition."""
    given = {(int(i), int(j)) for i, j in graph.edge_index.t()}
    edges = sorted(given if published.directed else given | {(j, i) for i, j in given})
    degree = np.array([sum(tail == i for tail, _ in edges) for i in range(graph.nodes)], dtype=float)
    degree += published.self_loops
    with np.errstate(divide="ignore"):
        s = ((1 if published.once else 2) * degree) ** -0.5
    s[degree == 0] = 0
    return [(i, j) for i, j in edges if i < j] if published.once else edges, s[:, None]


def normalize(flux: Array, norm: str, graph_of: Array | None) -> Array:
    """ν of the stored edges: (E, H)."""
    if graph_of is None:
        assert norm == "layer"
        return np.asarray(flux / (flux.std() + 1e-5))
    out = np.empty_like(flux)
    for graph in np.unique(graph_of):
        rows = graph_of == graph
        square = flux[rows] ** 2
        mean = square.mean() if norm == "layer" else square.mean(axis=0)
        out[rows] = flux[rows] / np.sqrt(mean + 1e-5)
    return out


def trajectory(published: Published, weights: dict[str, Array], b: Array, graph: Tiny) -> list[Array]:
    """Z after each pass over the layers, from Z = 0."""
    options = published.settings
    edges, s = stored(published, graph)
    tail, head = np.array(edges).T
    graph_of = None if graph.batch is None else graph.batch.numpy()[tail]
    z, path = np.zeros_like(b), []
    for _ in range(options.steps):
        gradient = np.zeros_like(z)
        for i, j in edges:  # of mean_i Σ_j ‖s_i z_i - s_j z_j‖²
            difference = s[i] * z[i] - s[j] * z[j]
            gradient[i] += 2 * s[i] * difference / graph.nodes
            gradient[j] -= 2 * s[j] * difference / graph.nodes
        z = z - options.eta * gradient
        for number in range(options.layers):
            layer = {key.rpartition(".")[2]: w for key, w in weights.items() if f"layers.0.layers.{number}." in key}
            K = layer["K"]
            injected = b @ layer["U"].T + layer["injection_offset"] if options.separate else b @ K.T
            y = s * (z @ K.T) + (injected if options.row else s * injected)
            flux = layer["gamma"] * normalize(np.tanh(y[tail] - y[head]), options.norm, graph_of)
            collected = np.zeros_like(y)
            for e, (i, j) in enumerate(edges):
                collected[i] += s[i] * flux[e]
                collected[j] -= s[j] * flux[e]
            z = (1 - options.alpha) * z - options.alpha * collected @ K
        path.append(z)
    return path


def scores(published: Published, weights: dict[str, Array], x: Array, graph: Tiny) -> Array:
    """The whole model."""
    _, s = stored(published, graph)
    b = x @ weights["encoder.weight"].T + weights["encoder.bias"]
    z = trajectory(published, weights, b, graph)[-1]
    hidden = b + (s * z if published.settings.row else z)
    if published.settings.pooled:
        assert graph.batch is not None
        hidden = np.stack([hidden[graph.batch.numpy() == k].sum(axis=0) for k in range(3)])
    if published.settings.mlp:
        hidden = hidden @ weights["head.1.weight"].T + weights["head.1.bias"]
        hidden = np.where(hidden > 0, hidden, np.expm1(hidden))
        return np.asarray(hidden @ weights["head.4.weight"].T + weights["head.4.bias"])
    return np.asarray(hidden @ weights["head.1.weight"].T + weights["head.1.bias"])


def edge_storing(name: str, model: gind.GIND) -> tuple[EdgeStoring, tuple[torch.Tensor, torch.Tensor]]:
    published, graph = PUBLISHED[name], tiny(PUBLISHED[name])
    reference = EdgeStoring(FEATURES, published.hidden, CLASSES, published.settings).double().eval()
    reference.load_state_dict(model.state_dict())
    edges, s = store_edges(
        graph.edge_index,
        graph.nodes,
        self_loops=published.self_loops,
        directed=published.directed,
        once=published.once,
    )
    return reference, (edges, s)


@every_dataset
def test_scores_equal_the_equations(name: str) -> None:
    published, model, x = PUBLISHED[name], make(name), features()
    graph = tiny(published)
    expected = torch.from_numpy(scores(published, arrays(model), x.numpy(), graph))
    assert_close(model(x, graph.edge_index, batch=graph.batch), expected, atol=1e-9, rtol=1e-9)
    reference, stores = edge_storing(name, model)
    assert_close(reference(x, *stores, graph.batch), expected, atol=1e-9, rtol=1e-9)


@every_dataset
def test_every_step_equals_the_equations(name: str) -> None:
    published, model, x = PUBLISHED[name], make(name), features()
    given = tiny(published)
    graph = gind.Graph.from_edge_index(given.edge_index, 10, batch=given.batch, directed=published.directed)
    (composition,) = model.layers
    assert isinstance(composition, Composition)
    with torch.no_grad():
        b = model.encoder(x)
        maps = [layer.bind(b, graph) for layer in composition.layers if isinstance(layer, gind.Diffusion)]
        z = torch.zeros_like(b)
        for expected in trajectory(published, arrays(model), b.numpy(), given):
            for one in maps:
                z = one.relaxed(z, composition.alpha)
            assert_close(z, torch.from_numpy(expected), atol=1e-9, rtol=1e-9)
        _, solution = composition(b, graph, return_solution=True)
    assert solution.steps == published.settings.steps
    assert_close(solution.value, z)


@every_dataset
def test_gradients_equal_those_of_stored_edges(name: str) -> None:
    model, x, graph = make(name), features(), tiny(PUBLISHED[name])
    reference, stores = edge_storing(name, model)
    out, expected = model(x, graph.edge_index, batch=graph.batch), reference(x, *stores, graph.batch)
    assert_close(out, expected, atol=1e-10, rtol=1e-10)
    direction = torch.randn(out.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    (out * direction).sum().backward()
    (expected * direction).sum().backward()
    ours, theirs = dict(model.named_parameters()), dict(reference.named_parameters())
    assert ours.keys() == theirs.keys()
    for key, parameter in theirs.items():
        assert parameter.grad is not None, key
        scale = float(parameter.grad.abs().max())
        assert_close(ours[key].grad, parameter.grad, atol=1e-10 * max(scale, 1), rtol=1e-10)


@every_dataset
def test_rounding_of_gradients_is_that_of_stored_edges(name: str) -> None:
    """In float32 against float64: at the median of some inputs no more than one and a half the error of the reference.

    A live normalization amplifies rounding errors, so that of one input alone the ratio is anything from 1/5 to 5.
    """
    model, graph = make(name), tiny(PUBLISHED[name])
    reference, (edges, s) = edge_storing(name, model)

    def gradient(run: Callable[[], torch.Tensor], module: torch.nn.Module) -> torch.Tensor:
        out = run()
        direction = torch.randn(out.shape, generator=torch.Generator().manual_seed(2))
        found = torch.autograd.grad((out * direction).sum(), list(module.parameters()))
        return torch.cat([part.double().flatten() for part in found])

    ratios = []
    for seed in range(15):
        x = torch.randn(features().shape, generator=torch.Generator().manual_seed(seed))
        for module in (model, reference):  # the same weights in both precisions
            module.float().double()
        exact = gradient(partial(reference, x.double(), edges, s, graph.batch), reference)
        theirs = gradient(partial(reference, x, edges, s.float(), graph.batch), reference.float())
        ours = gradient(partial(model, x, graph.edge_index, batch=graph.batch), model.float())
        ratios.append(float((ours - exact).norm() / (theirs - exact).norm()))
    assert statistics.median(ratios) <= 1.5


@every_dataset
def test_training_is_as_published(name: str) -> None:
    published, spec = PUBLISHED[name], make_spec({"dataset": name, "model": "gind-published"})
    options, settings = spec.train, published.settings
    assert (options.implicit_lr, options.lr) == published.lr
    assert (options.implicit_weight_decay, options.weight_decay) == published.decay
    assert (options.epochs, options.patience) == published.epochs
    assert options.optimizer == "adam"
    assert spec.model_options["hidden"] == published.hidden
    assert spec.model_options.get("dropout", 0.0) == settings.dropout
    assert spec.model_options.get("diffusion_dropout", 0.0) == settings.flux_dropout
    assert spec.data.features == ("row" if published.task == "node" else None)


@every_dataset
def test_weights_begin_as_published(name: str) -> None:
    published = PUBLISHED[name]
    spec = make_spec({"dataset": name, "model": "gind-published"})
    torch.manual_seed(0)
    model: Any = model_entry("gind-published").for_data(published.task, 400, 6, spec.model_options)
    model.requires_grad_(False)
    for _ in range(2):
        last = model.head[-1]
        assert float(model.encoder.weight.std()) == pytest.approx((2 / 400) ** 0.5, rel=0.05)
        assert float(last.weight.std()) == pytest.approx((2 / (published.hidden + 6)) ** 0.5, rel=0.2)
        assert not bool(model.encoder.bias.any())
        assert not bool(last.bias.any())
        layers = model.layers[0].layers
        assert len(layers) == published.settings.layers
        for layer in layers:
            assert float(layer.K.std()) == pytest.approx((2 / published.hidden) ** 0.5, rel=0.1)
            assert bool((layer.gamma == published.gamma).all())
            assert (layer.injection_offset is not None) == published.settings.separate
            assert layer.injection_offset is None or not bool(layer.injection_offset.any())
        model.reset_parameters()


def test_regularizer_steps_once_per_pass() -> None:
    """In a composition only the first layer has it."""
    regularizer = gind.LaplacianStep(0.1)
    model = gind.GIND(3, 4, 2, 3, depth="composition", regularizer=regularizer, edge_norm=gind.LiveNorm())
    found = [layer.regularizer for layer in model.modules() if isinstance(layer, gind.Diffusion)]
    assert found == [regularizer, None, None]


def test_one_mask_on_the_update_for_all_steps() -> None:
    """What the mask leaves out stays 0 from Z = 0 to the end."""
    given = tiny(PUBLISHED["texas"])
    graph = gind.Graph.from_edge_index(given.edge_index, 10)
    (composition,) = make("texas").layers
    composition.train()
    b = torch.randn(10, 128, dtype=torch.float64)
    _, solution = composition(b, graph, return_solution=True)
    moved = (solution.value != 0)[:7].double().mean()
    assert 0.4 < float(moved) < 0.6
    assert solution.steps == PUBLISHED["texas"].settings.steps
