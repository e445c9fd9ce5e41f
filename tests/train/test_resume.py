"""A training that was cut and resumed gives the same bits as one that was not, whatever is trained and however."""

import dataclasses
import math
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from training_problems import Cut, cycles_and_paths, many_labels, two_blocks

import gind
from gind.baselines import GCN, MLP
from gind.datasets import Dataset
from gind.train import (
    CheckpointError,
    Cosine,
    FitReport,
    Linear,
    Observer,
    Restarts,
    StepDecay,
    fit,
    load_tensors,
    save_tensors,
)
from gind.train.state import fingerprint
from gind.train.wrap import as_problem

EPOCHS = 7
LOOSE = gind.Stop(1e-2, 100)


class Normed(nn.Module):
    """A model of one's own, with buffers that change in training, and without a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 2))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.net(x)
        return out


def diffusion(features: int, classes: int, **options: Any) -> gind.GIND:
    return gind.GIND(features, 6, classes, **{"dropout": 0.3, "diffusion_dropout": 0.2, "stop": LOOSE, **options})


@dataclasses.dataclass(frozen=True)
class Case:
    """A model on a problem, with options of training."""

    model: Callable[[], nn.Module]
    data: Callable[[], Data | Dataset]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    def fit(self, **more: Any) -> tuple[nn.Module, FitReport]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            model = self.model()
        return model, fit(model, self.data(), **{"epochs": EPOCHS, "seed": 3, "lr": 0.05, **self.options, **more})


def nodes(model: Callable[[], nn.Module] = lambda: diffusion(4, 2), **options: Any) -> Case:
    return Case(model, two_blocks, options)


CASES = {
    "nodes": nodes(),
    "two layers": nodes(lambda: diffusion(4, 2, num_layers=2, head="mlp")),
    "warm start": nodes(warm_start=True),
    "warm start, two layers": nodes(lambda: diffusion(4, 2, num_layers=2), warm_start=True, schedule=Cosine()),
    "warm start, odd width": nodes(lambda: gind.GIND(4, 5, 2, dropout=0.2, stop=LOOSE), warm_start=True),
    "live norm": nodes(lambda: diffusion(4, 2, edge_norm=gind.LiveNorm(), stop=gind.Stop(1e-2, 8)), warm_start=True),
    "frozen norm": nodes(lambda: diffusion(4, 2, edge_norm=gind.FrozenNorm(), injection="separate")),
    "anderson": nodes(lambda: diffusion(4, 2, solver=gind.Anderson(), adjoint=gind.Phantom(3))),
    "cosine": nodes(schedule=Cosine(warmup=2)),
    "step": nodes(schedule=StepDecay(every=2, decay=0.5), optimizer="adamw"),
    "restarts": nodes(schedule=Restarts(period=3), clip=0.1),
    "validation every third epoch": nodes(eval_every=3),
    "patience": nodes(lambda: MLP(4, 8, 2), patience=6, epochs=30, lr=0.5),
    "patience with ties": nodes(
        lambda: MLP(4, 8, 2), patience=2, patience_counts="worse", epochs=30, lr=0.5, schedule=Linear()
    ),
    "patience by loss": nodes(lambda: MLP(4, 8, 2), patience=4, best_by="loss", epochs=30, lr=0.5),
    "composition": nodes(
        lambda: diffusion(4, 2, num_layers=2, depth="composition", init="normal", edge_norm=gind.LiveNorm())
    ),
    "mlp": nodes(lambda: MLP(4, 8, 2)),
    "gcn": nodes(lambda: GCN(4, 8, 2)),
    "own module with buffers": nodes(Normed),
    "graphs": Case(lambda: diffusion(2, 2, task="graph"), lambda: cycles_and_paths(12), {"batch_size": 2}),
    "graphs, one batch": Case(lambda: diffusion(2, 2, task="graph", pooling="mean"), cycles_and_paths),
    "many labels": Case(lambda: diffusion(3, 3), many_labels, {"batch_size": 2, "schedule": Cosine()}),
}


def bits(tensors: dict[str, Tensor]) -> dict[str, bytes]:
    return {name: tensor.detach().numpy().tobytes() for name, tensor in tensors.items()}


def without_time(report: FitReport) -> tuple[Any, ...]:
    # where nothing was validated there is nan, which differs from itself
    rows = [{k: v for k, v in vars(r).items() if k != "seconds" and v == v} for r in report.history]
    return (report.metric, report.best_epoch, report.best_value, report.best_loss, report.stopped_by, rows)


def state(path: Path) -> dict[str, bytes]:
    """Everything in a checkpoint but the time each epoch took, which is the last column."""
    tensors = load_tensors(path, "checkpoint")[0]
    tensors["history"] = tensors["history"][:, :-1].nan_to_num(-1).contiguous()
    return bits(tensors)


def check_same(left: tuple[nn.Module, FitReport], right: tuple[nn.Module, FitReport]) -> None:
    assert bits(left[0].state_dict()) == bits(right[0].state_dict())
    assert without_time(left[1]) == without_time(right[1])


@pytest.mark.parametrize("name", CASES)
def test_crash_and_resume_give_the_same_bits(name: str, tmp_path: Path) -> None:
    """Crashes in epochs 2, 3 and 6, a checkpoint after every epoch: each time one epoch is lost and done again."""
    case, path = CASES[name], tmp_path / "c"
    whole = case.fit(checkpoint=tmp_path / "whole")
    for at in (2, 3, 6):
        with pytest.raises(ConnectionAbortedError):
            case.fit(checkpoint=path, checkpoint_every=1, resume=True, observers=[Cut(at)])
        assert len(load_tensors(path, "checkpoint")[0]["history"]) == at - 1
    check_same(case.fit(checkpoint=path, resume=True), whole)
    assert state(path) == state(tmp_path / "whole")


@pytest.mark.parametrize("name", ["nodes", "warm start", "validation every third epoch", "graphs"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_signal_and_resume_give_the_same_bits(name: str, number: signal.Signals, tmp_path: Path) -> None:
    case, path = CASES[name], tmp_path / "c"
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    for at in (1, 4):
        _, report = case.fit(checkpoint=path, resume=True, observers=[Cut(at, number)])
        assert report.stopped_by == number.name
        assert not report.finished
        assert len(report.history) == at
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    check_same(case.fit(checkpoint=path, resume=True), case.fit())


def test_signal_in_the_last_epoch(tmp_path: Path) -> None:
    case, path = CASES["nodes"], tmp_path / "c"
    case.fit(checkpoint=path, observers=[Cut(EPOCHS, signal.SIGTERM)])
    check_same(case.fit(checkpoint=path, resume=True), case.fit())


def test_second_interrupt_acts_at_once(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        CASES["mlp"].fit(observers=[Cut(2, signal.SIGINT), Cut(2, signal.SIGINT)])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_without_a_checkpoint_keeps_the_best_weights() -> None:
    model, report = CASES["mlp"].fit(observers=[Cut(3, signal.SIGINT)])
    shorter, _ = CASES["mlp"].fit(epochs=3)
    assert report.stopped_by == "SIGINT"
    assert bits(model.state_dict()) == bits(shorter.state_dict())


def test_fit_outside_of_the_main_thread(tmp_path: Path) -> None:
    results: list[tuple[nn.Module, FitReport]] = []
    thread = threading.Thread(target=lambda: results.append(CASES["mlp"].fit(checkpoint=tmp_path / "c")))
    thread.start()
    thread.join()
    check_same(results[0], CASES["mlp"].fit())


def test_more_epochs_than_at_first(tmp_path: Path) -> None:
    """How long to train may be changed: with a constant rate the result is that of a long training."""
    case, path = CASES["nodes"], tmp_path / "c"
    case.fit(checkpoint=path, epochs=3)
    check_same(case.fit(checkpoint=path, resume=True, patience=50), case.fit(patience=50))


def test_resume_of_a_finished_training_changes_nothing(tmp_path: Path) -> None:
    case, path = CASES["graphs"], tmp_path / "c"
    whole = case.fit(checkpoint=path)
    before = state(path)
    again = case.fit(checkpoint=path, resume=True)
    check_same(again, whole)
    assert again[1].seconds == whole[1].seconds
    assert state(path) == before


def test_resume_without_a_checkpoint_begins(tmp_path: Path) -> None:
    check_same(CASES["mlp"].fit(checkpoint=tmp_path / "c", resume=True), CASES["mlp"].fit())


def test_without_resume_a_checkpoint_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_bytes(b"nonsense")
    check_same(CASES["mlp"].fit(checkpoint=path), CASES["mlp"].fit())


def test_observers_are_told_of_the_epochs_before(tmp_path: Path) -> None:
    seen: list[int] = []

    class Start(Observer):
        def start(self, history: Any, epochs: int, metric: str) -> None:
            seen.extend(record.epoch for record in history)

    CASES["mlp"].fit(checkpoint=tmp_path / "c", epochs=4)
    CASES["mlp"].fit(checkpoint=tmp_path / "c", resume=True, observers=[Start()])
    assert seen == [1, 2, 3, 4]


def numpy_state() -> tuple[bytes, int]:
    state = np.random.get_state(legacy=False)["state"]  # noqa: NPY002 (the global one, which a caller may use)
    return state["key"].tobytes(), state["pos"]


def test_random_numbers_of_the_caller_are_left_alone(tmp_path: Path) -> None:
    """By a training, a crash, a refused checkpoint and a resume."""
    before = torch.get_rng_state(), numpy_state(), random.getstate()
    case, path = CASES["graphs"], tmp_path / "c"
    case.fit(checkpoint=path, epochs=2)
    with pytest.raises(ConnectionAbortedError):
        case.fit(checkpoint=path, resume=True, observers=[Cut(3)])
    with pytest.raises(CheckpointError):
        case.fit(checkpoint=path, resume=True, seed=9)
    case.fit(checkpoint=path, resume=True)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert numpy_state() == before[1]
    assert random.getstate() == before[2]


def test_random_numbers_of_the_caller_do_not_matter(tmp_path: Path) -> None:
    case = CASES["graphs"]
    whole = case.fit()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(77)
        with pytest.raises(ConnectionAbortedError):
            case.fit(checkpoint=tmp_path / "c", checkpoint_every=1, observers=[Cut(4)])
        torch.manual_seed(78)
        check_same(case.fit(checkpoint=tmp_path / "c", resume=True), whole)


def changed(**values: Callable[[Data], Tensor]) -> Callable[[], Data]:
    def make() -> Data:
        data = two_blocks()
        return Data.from_dict(data.to_dict() | {name: change(data) for name, change in values.items()})

    return make


def flip(y: Tensor, index: Tensor) -> Tensor:
    y = y.clone()
    y[index] = 1 - y[index]
    return y


OTHER: dict[str, tuple[Case, dict[str, Any], str]] = {
    "seed": (nodes(), {"seed": 4}, "seed is 3, here it is 4"),
    "rate": (nodes(lr=0.04), {}, "lr is 0.05, here it is 0.04"),
    "schedule": (nodes(schedule=Cosine()), {}, "schedule is Constant"),
    "optimizer": (nodes(optimizer="adamw"), {}, "optimizer is 'adam', here it is 'adamw'"),
    "best epoch": (nodes(best_by="loss"), {}, "best_by is 'metric', here it is 'loss'"),
    "warm start": (nodes(warm_start=True), {}, "warm_start"),
    "width": (nodes(lambda: gind.GIND(4, 5, 2)), {}, "model is GIND"),
    "model": (nodes(lambda: MLP(4, 6, 2)), {}, "model is GIND .*, here it is MLP"),
    "edges": (Case(CASES["nodes"].model, changed(edge_index=lambda d: d.edge_index.flip(0))), {}, "data is"),
    "labels": (Case(CASES["nodes"].model, changed(y=lambda d: flip(d.y, d.train_mask))), {}, "data is"),
    "features": (Case(CASES["nodes"].model, changed(x=lambda d: d.x + 1)), {}, "data is"),
    "weights": (
        Case(CASES["nodes"].model, changed(edge_weight=lambda d: torch.full((d.num_edges,), 2.0))),
        {},
        "data is",
    ),
    "split": (
        Case(CASES["nodes"].model, changed(train_mask=lambda d: d.val_mask, val_mask=lambda d: d.train_mask)),
        {},
        "data is",
    ),
}


# of the same shapes as GIND(4, 6, 2)
OPTIONS: dict[str, dict[str, Any]] = {
    "dropout": {"dropout": 0.5},
    "task": {"task": "graph"},
    "pooling": {"pooling": "mean"},
    "directed": {"directed": True},
    "init": {"init": "normal"},
    "between": {"between": "relu"},
    "depth": {"depth": "composition", "solver": gind.Anderson()},
    "diffusion dropout": {"diffusion_dropout": 0.5},
    "scaling": {"scaling": gind.Identity()},
    "activation": {"activation": "identity"},
    "regularizer": {"regularizer": gind.Laplacian(0.5)},
    "output": {"output": "flux"},
    "output norm": {"output_norm": True},
    "injection norm": {"injection_norm": True},
    "injection gain": {"injection_gain": 2.0},
    "flux gain": {"flux_gain": 2.0},
    "strength": {"K_norm": 1.0},
    "solver": {"solver": gind.Nesterov()},
    "stop": {"stop": gind.Stop(0.1, 3)},
    "adjoint": {"adjoint": gind.Phantom(3)},
    "throw": {"throw": "ignore"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_of_the_model_is_compared(name: str) -> None:
    """All of them are in the description, but for those that the shapes of the parameters show."""
    problem = as_problem(two_blocks(), None, gind.FitOptions().batch_size)
    models = (gind.GIND(4, 6, 2, **options) for options in ({}, OPTIONS[name]))
    plain, other = (fingerprint(model, problem, gind.FitOptions(), 0) for model in models)
    assert plain["description"] != other["description"]


def test_another_model_of_the_same_shapes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    other = nodes(lambda: diffusion(4, 2, dropout=0.0, scaling=gind.Identity(), activation="identity"))
    CASES["nodes"].fit(checkpoint=path, epochs=2)
    with pytest.raises(CheckpointError, match=r"its description is dropout=0\.3, here it is .*Linear"):
        other.fit(checkpoint=path, resume=True)
    other = nodes(lambda: diffusion(4, 2, stop=gind.Stop(0.1, 3)))
    with pytest.raises(CheckpointError, match=r"tol=0\.01, max_steps=100, .* here it is .*tol=0\.1, max_steps=3, "):
        other.fit(checkpoint=path, resume=True)


def test_a_checkpoint_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """It has no description of the model, and its best epoch is that of the metric."""
    case, path = CASES["nodes"], tmp_path / "c"
    case.fit(checkpoint=path, epochs=3)
    tensors, about = load_tensors(path, "checkpoint")
    del about["fingerprint"]["description"], about["fingerprint"]["best_by"]
    save_tensors(path, tensors, {"fingerprint": about["fingerprint"], "best": about["best"]}, "checkpoint")
    with pytest.raises(CheckpointError, match="best_by is 'metric', here it is 'loss'"):
        case.fit(checkpoint=path, resume=True, best_by="loss")
    check_same(case.fit(checkpoint=path, resume=True), case.fit())


class Sharpened(nn.Module):
    """A model with a function in its repr, which lies elsewhere each time."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.sharpen: Callable[[Tensor], Tensor] = lambda x: 2 * x

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.sharpen(self.net(x))
        return out

    def extra_repr(self) -> str:
        return f"sharpen={self.sharpen}"


def test_addresses_in_memory_are_not_compared(tmp_path: Path) -> None:
    case, path = nodes(Sharpened), tmp_path / "c"
    kept, _ = case.fit(checkpoint=path, epochs=3)
    again = case.fit(checkpoint=path, resume=True)
    assert repr(again[0]) != repr(kept)
    check_same(again, case.fit())


@pytest.mark.parametrize("number", ["99", "-1"])
def test_the_state_of_a_parameter_that_is_not_there_is_refused(tmp_path: Path, number: str) -> None:
    case, path = CASES["mlp"], tmp_path / "c"
    case.fit(checkpoint=path, epochs=2)
    tensors, about = load_tensors(path, "checkpoint")
    more = {name.replace("optimizer.0.", f"optimizer.{number}."): tensor for name, tensor in tensors.items()}
    save_tensors(path, more, {"fingerprint": about["fingerprint"], "best": about["best"]}, "checkpoint")
    with pytest.raises(CheckpointError, match=f"is not complete .*parameter {number}"):
        case.fit(checkpoint=path, resume=True)


@pytest.mark.parametrize("name", OTHER)
def test_checkpoint_of_another_training_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    CASES["nodes"].fit(checkpoint=path, epochs=2)
    before = path.read_bytes()
    case, more, words = OTHER[name]
    with pytest.raises(CheckpointError, match=words):
        case.fit(checkpoint=path, resume=True, **more)
    assert path.read_bytes() == before


def test_truncated_checkpoint_is_refused_at_any_length(tmp_path: Path) -> None:
    path = tmp_path / "c"
    CASES["mlp"].fit(checkpoint=path, epochs=2)
    whole = path.read_bytes()
    for share in (0, 0.0001, 0.01, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.999):
        path.write_bytes(whole[: math.floor(share * len(whole))])
        with pytest.raises(CheckpointError, match="damaged"):
            CASES["mlp"].fit(checkpoint=path, resume=True)


def test_damaged_header_is_refused_or_harmless(tmp_path: Path) -> None:
    """Any byte of the description may be wrong: there is no other error than ours."""
    path, case = tmp_path / "c", CASES["mlp"]
    case.fit(checkpoint=path, epochs=2)
    whole = path.read_bytes()
    length = 8 + int.from_bytes(whole[:8], "little")
    rng, refused = random.Random(0), 0
    for _ in range(60):
        place = rng.randrange(length)
        path.write_bytes(whole[:place] + bytes([rng.randrange(32, 127)]) + whole[place + 1 :])
        try:
            case.fit(checkpoint=path, resume=True, epochs=3)
        except CheckpointError:
            refused += 1
    assert refused > 30
