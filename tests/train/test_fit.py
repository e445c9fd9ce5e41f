"""`fit`: what it learns, what it may see, and that the same seed gives the same numbers."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from training_problems import cycles_and_paths, many_labels, two_blocks

import gind
from gind.baselines import GCN, MLP
from gind.datasets import DataError, Split
from gind.train import (
    Cosine,
    EpochRecord,
    FitOptions,
    FitReport,
    Observer,
    Problem,
    evaluate,
    fit,
    implicit_parameters,
    make_parts,
    split_of_masks,
)
from gind.train.stopping import BestBy


def small(features: int = 4, classes: int = 2, **options: Any) -> gind.GIND:
    torch.manual_seed(0)
    return gind.GIND(features, 8, classes, **options)


def bits(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_same_bits(left: dict[str, Tensor], right: dict[str, Tensor]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        assert torch.equal(left[name], right[name]), name


class Recorder(Observer):
    def __init__(self) -> None:
        self.events: list[object] = []

    def start(self, history: object, epochs: int, metric: str) -> None:
        self.events.append(("start", epochs, metric))

    def epoch(self, record: EpochRecord) -> None:
        self.events.append(record)

    def end(self) -> None:
        self.events.append("end")


def test_nodes_are_learned_and_the_best_weights_stay() -> None:
    data = two_blocks()
    model = small(dropout=0.2)
    report = fit(model, data, epochs=40, lr=0.05)
    assert report.best_value == max(record.val for record in report.history)
    best = report.history[report.best_epoch - 1]
    assert best.best
    assert (best.val, best.val_loss) == (report.best_value, report.best_loss)
    scores = model(data.x, data.edge_index)
    accuracy = (scores.argmax(1) == data.y)[data.val_mask].double().mean()
    assert float(accuracy) == report.best_value, "the weights are those of the best epoch"
    test = (scores.argmax(1) == data.y)[data.test_mask].double().mean()
    assert float(test) >= 0.95
    assert not model.training


def test_graphs_are_learned_in_batches() -> None:
    data = cycles_and_paths()
    model = small(2, task="graph")
    report = fit(model, data, 0, epochs=40, lr=0.05, batch_size=3)
    assert report.best_value == 1.0
    test = evaluate(model, make_parts(data, data.splits[0].test, 4), "graph", "accuracy")
    assert test.value >= 0.85
    assert test.solves.solves == 2
    assert test.solves.open == 0


def test_many_labels_are_learned_on_unseen_graphs() -> None:
    data = many_labels()
    model = small(3, 3)
    report = fit(model, data, epochs=60, lr=0.05, batch_size=2)
    assert report.metric == "micro_f1"
    test = evaluate(model, make_parts(data, data.splits[0].test, 4), "multilabel", "micro_f1")
    assert test.value > 0.9


@pytest.mark.parametrize("kind", [GCN, MLP])
def test_any_module_can_be_fitted(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    model = kind(4, 8, 2)
    report = fit(model, two_blocks(), epochs=30, lr=0.05)
    assert report.best_value >= 0.9
    assert all(record.steps == 0 and record.open == 0 for record in report.history)
    assert implicit_parameters(model) == []


def test_a_model_of_pyg_can_be_fitted() -> None:
    from torch_geometric import nn as pyg

    torch.manual_seed(0)
    assert fit(pyg.GCN(4, 8, 2, 2), two_blocks(), epochs=20, lr=0.05).best_value >= 0.9


def test_test_labels_change_nothing() -> None:
    data, other = two_blocks(), two_blocks()
    other.y[other.test_mask] = 1 - other.y[other.test_mask]
    first, second = small(dropout=0.3), small(dropout=0.3)
    fit(first, data, epochs=8)
    fit(second, other, epochs=8)
    assert_same_bits(bits(first), bits(second))


def test_a_problem_holds_no_labels_but_those_of_train_and_val() -> None:
    data = two_blocks()
    problem = Problem.of(gind.train.wrap.as_dataset(data), split_of_masks(data))
    for part in (*problem.train, *problem.val):
        assert set(part.data.keys()) <= {"x", "edge_index", "edge_weight", "num_nodes"}
    assert len(problem.train[0].y) + len(problem.val[0].y) == 20
    rings = cycles_and_paths()
    graphs = Problem.of(rings, rings.splits[0])
    assert len(graphs.train) == 8
    assert sum(len(part.y) for part in graphs.val) == 8


def test_same_seed_same_bits_other_seed_other_bits() -> None:
    results = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed + 17)  # the caller's generator must not matter
        model = small(dropout=0.5, diffusion_dropout=0.3)
        report = fit(model, two_blocks(), epochs=6, seed=seed)
        results.append((bits(model), [record.loss for record in report.history]))
    assert_same_bits(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]
    assert results[0][1] != results[2][1]


def test_the_callers_random_numbers_are_left_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model = gind.GIND(4, 8, 2, dropout=0.5)
    torch.manual_seed(5)
    fit(model, two_blocks(), epochs=2)
    assert torch.equal(torch.rand(3), expected)


def test_warm_start_gives_the_same_answer_within_tolerance_in_fewer_steps() -> None:
    stop = gind.Stop(1e-6, 500)
    cold, warm = (small(stop=stop) for _ in range(2))
    first = fit(cold, two_blocks(), epochs=15, implicit_lr=1e-4, lr=1e-3)
    second = fit(warm, two_blocks(), epochs=15, implicit_lr=1e-4, lr=1e-3, warm_start=True)
    for a, b in zip(first.history, second.history, strict=True):
        assert a.loss == pytest.approx(b.loss, abs=1e-4)
    assert sum(r.steps for r in second.history) < 0.8 * sum(r.steps for r in first.history)
    assert all(r.residual <= 1e-6 and r.open == 0 for r in second.history)


def test_with_dropout_only_validations_start_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[tuple[bool, bool]] = []
    forward = gind.GIND.forward

    def watched(self: gind.GIND, *args: Any, z0: Any = None, **named: Any) -> Tensor:
        starts.append((self.training, z0 is not None))
        scores: Tensor = forward(self, *args, z0=z0, **named)
        return scores

    monkeypatch.setattr(gind.GIND, "forward", watched)
    cases: list[dict[str, Any]] = [{"dropout": 0.3}, {"diffusion_dropout": 0.3}, {}]
    for options in cases:
        starts.clear()
        fit(small(**options), two_blocks(), epochs=4, warm_start=True)
        assert {warm for training, warm in starts[2:] if training} == {not options}
        assert any(warm for training, warm in starts if not training)


def test_implicit_and_explicit_parameters_have_their_own_rates() -> None:
    model = small(injection="separate", edge_norm=gind.FrozenNorm())
    before = bits(model)
    fit(model, two_blocks(), epochs=1, lr=0.0, implicit_lr=0.1)
    moved = {name for name, tensor in bits(model).items() if not torch.equal(tensor, before[name])}
    assert moved == {"layers.0.K", "layers.0.U", "layers.0.gamma"}
    model = small()
    fit(model, two_blocks(), epochs=1, lr=0.1, implicit_lr=0.0, implicit_weight_decay=0.5)
    moved = {name for name, tensor in bits(model).items() if not torch.equal(tensor, before.get(name, tensor))}
    assert not any(name.startswith("layers") for name in moved)


def test_weight_decay_shrinks() -> None:
    norms = []
    for decay in (0.0, 1.0):
        model = small()
        fit(model, two_blocks(), epochs=30, weight_decay=decay, patience=0)
        norms.append(float(model.encoder.weight.detach().norm()))
    assert norms[1] < 0.7 * norms[0]


def test_one_step_of_adam_written_out() -> None:
    """After one step with clipping, w = w0 - lr g/(|g| + ε) with the clipped gradient g."""
    data = two_blocks()
    model, copy = small(), small()
    fit(model, data, epochs=1, lr=0.02, implicit_lr=0.003, weight_decay=0.0, clip=1e-3)
    loss = nn.functional.cross_entropy(copy(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
    torch.autograd.backward(loss)
    total = math.sqrt(sum(float(p.grad.square().sum()) for p in copy.parameters() if p.grad is not None))
    for (name, new), old in zip(model.named_parameters(), copy.parameters(), strict=True):
        assert old.grad is not None
        g = old.grad * min(1.0, 1e-3 / (total + 1e-6))
        rate = 0.003 if name == "layers.0.K" else 0.02
        expected = old - rate * g / (g.abs() + 1e-8)
        torch.testing.assert_close(new, expected, atol=2e-5, rtol=0)


def test_the_best_epoch_may_be_that_of_the_lowest_loss() -> None:
    """With this much noise loss and accuracy disagree about it."""

    def train(best_by: BestBy) -> FitReport:
        return fit(small(dropout=0.5), two_blocks(noise=8.0), epochs=40, lr=0.2, best_by=best_by)

    by_metric, by_loss = train("metric"), train("loss")
    losses = [record.val_loss for record in by_loss.history]
    assert [record.val_loss for record in by_metric.history] == losses, "the trainings are the same"
    assert by_loss.best_epoch == 1 + losses.index(min(losses)) != by_metric.best_epoch
    assert by_loss.best_loss == min(losses) < by_metric.best_loss
    assert by_loss.best_value == by_loss.history[by_loss.best_epoch - 1].val < by_metric.best_value


def test_patience_ends_training() -> None:
    report = fit(small(), two_blocks(), epochs=200, patience=5, lr=0.05)
    assert report.stopped_by == "patience"
    assert len(report.history) == report.best_epoch + 5
    assert fit(small(), two_blocks(), epochs=12, patience=0).stopped_by == "epochs"


def test_schedule_is_followed() -> None:
    report = fit(small(), two_blocks(), epochs=4, lr=0.1, schedule=Cosine(warmup=1))
    assert len(report.history) == 4
    factors = [Cosine(warmup=1).factor(epoch, 4) for epoch in (1, 2, 3, 4)]
    assert factors == pytest.approx([0.5, 1.0, 0.75, 0.25])


def test_validation_every_few_epochs() -> None:
    report = fit(small(), two_blocks(), epochs=7, eval_every=3)
    seen = [not math.isnan(record.val) for record in report.history]
    assert seen == [False, False, True, False, False, True, True], "and at the end"


def test_observers_see_everything_also_a_bad_end() -> None:
    recorder = Recorder()
    fit(small(), two_blocks(), epochs=3, observers=[recorder])
    assert recorder.events[0] == ("start", 3, "accuracy")
    assert [e.epoch for e in recorder.events if isinstance(e, EpochRecord)] == [1, 2, 3]
    assert recorder.events[-1] == "end"

    data = two_blocks()
    broken = Recorder()
    with pytest.raises(FloatingPointError, match="lr"):
        fit(small(), data, epochs=30, lr=1e30, observers=[broken])
    assert broken.events[-1] == "end"


def test_solves_that_do_not_converge_are_counted_not_printed() -> None:
    model = small(stop=gind.Stop(1e-9, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = fit(model, two_blocks(), epochs=2)
    assert [record.open for record in report.history] == [2, 2]
    assert all(record.residual > 1e-9 for record in report.history)


def test_solves_that_were_asked_for_no_tolerance_are_not_counted() -> None:
    report = fit(small(stop=gind.Stop(0.0, 3, measure=False)), two_blocks(), epochs=2)
    assert [(record.open, record.steps) for record in report.history] == [(0, 3.0)] * 2
    assert all(math.isnan(record.residual) for record in report.history)


def test_weighted_edges_reach_the_model() -> None:
    data = two_blocks()
    data.edge_weight = torch.rand(data.num_edges)
    first, second = small(), small()
    fit(first, data, epochs=2)
    data.edge_weight = torch.ones(data.num_edges)
    fit(second, data, epochs=2)
    assert not torch.equal(first.encoder.weight, second.encoder.weight)


@pytest.mark.parametrize("density", [0.02, 0.5])
def test_sparse_features_train_like_dense_ones(density: float) -> None:
    data = two_blocks(n=60)
    generator = torch.Generator().manual_seed(1)
    words = (torch.rand(60, 50, generator=generator) < density).float()
    words[:, :2] = nn.functional.one_hot(data.y, 2).float()
    models = []
    for x in (words, words.to_sparse_csr()):
        data.x = x
        model = small(50, dropout=0.0)
        fit(model, data, epochs=10)
        models.append(model)
    torch.testing.assert_close(models[0].state_dict(), models[1].state_dict(), atol=1e-4, rtol=1e-3)


def test_a_number_chooses_among_the_masks_of_several_splits() -> None:
    one, several = two_blocks(), two_blocks()
    train, val = one.train_mask, one.val_mask
    one.train_mask, one.val_mask = val, train
    # one test part for all, as PyG has WikiCS
    several.train_mask, several.val_mask = torch.stack([train, val], dim=1), torch.stack([val, train], dim=1)
    expected, found = split_of_masks(one), split_of_masks(several, 1)
    assert all(torch.equal(getattr(found, name), getattr(expected, name)) for name in ("train", "val", "test"))
    weights = []
    for data, split in ((several, 1), (one, None)):
        model = small()
        fit(model, data, split, epochs=2)
        weights.append(model.state_dict())
    torch.testing.assert_close(*weights, rtol=0, atol=0)


class NoGraph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        raise NotImplementedError


REFUSED = [
    ("no masks", lambda d: fit(small(), _without(d, "train_mask")), DataError, "train_mask"),
    ("empty train", lambda d: fit(small(), d, Split(_none(), torch.arange(3), _none())), DataError, "train"),
    ("empty val", lambda d: fit(small(), d, Split(torch.arange(3), _none(), _none())), DataError, "val"),
    ("float labels", lambda d: fit(small(), _with(d, y=d.y.float())), DataError, "torch.long"),
    ("no labels", lambda d: fit(small(), _with(d, y=None)), DataError, "labels"),
    ("list without split", lambda d: fit(small(), [d, d]), DataError, "split"),
    ("not data", lambda d: fit(small(), []), DataError, "Data"),
    ("unknown option", lambda d: fit(small(), d, epoch=3), TypeError, "epoch"),
    ("epochs", lambda d: fit(small(), d, epochs=0), ValueError, "epochs"),
    ("lr", lambda d: fit(small(), d, lr=-1.0), ValueError, "lr"),
    ("clip", lambda d: fit(small(), d, clip=0.0), ValueError, "clip"),
    ("optimizer", lambda d: fit(small(), d, optimizer="sgd"), ValueError, "optimizer"),
    ("best_by", lambda d: fit(small(), d, best_by="accuracy"), ValueError, "best_by.*metric.*loss"),
    ("schedule", lambda d: fit(small(), d, schedule="cosine"), TypeError, "Schedule"),
    ("warm start", lambda d: fit(NoGraph(), d, warm_start=True), ValueError, "z0"),
    (
        "several splits",
        lambda d: fit(small(), _with(d, train_mask=torch.ones(40, 10, dtype=torch.bool))),
        DataError,
        "several splits",
    ),
    (
        "a split that is not there",
        lambda d: fit(small(), _with(d, train_mask=torch.ones(40, 10, dtype=torch.bool)), split=10),
        DataError,
        "0 to 9",
    ),
    ("a number for one split", lambda d: fit(small(), d, split=1), DataError, "one split only"),
    ("more classes than outputs", lambda d: fit(small(), _with(d, y=d.y + 5)), DataError, "as many outputs as classes"),
    (
        "unlabelled in train",
        lambda d: fit(small(), _with(d, y=torch.full((40,), -1)), Split(torch.arange(3), torch.arange(3, 6), _none())),
        DataError,
        "no label",
    ),
    (
        "overlap",
        lambda d: fit(small(), d, Split(torch.arange(3), torch.arange(2, 6), _none())),
        DataError,
        "overlap",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_refusals(call: Callable[[Any], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(two_blocks())


def test_options_are_checked_when_they_are_made() -> None:
    with pytest.raises(ValueError, match="patience"):
        FitOptions(patience=-1)


def _none() -> Tensor:
    return torch.empty(0, dtype=torch.long)


def _without(data: Any, name: str) -> object:
    del data[name]
    return data


def _with(data: object, **changes: object) -> object:
    for name, value in changes.items():
        setattr(data, name, value)
    return data


def test_labels_of_a_wrong_shape_are_refused() -> None:
    data = two_blocks()
    data.y = data.y[:, None]
    with pytest.raises(DataError, match="squeeze"):
        fit(small(), data)
    data.y = torch.rand(40, 3)
    with pytest.raises(DataError, match="list of graphs"):
        fit(small(), data)
