"""The small parts of training: metrics, schedules, patience, files, progress."""

import importlib.util
import io
import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from graphs import MODEST
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from sklearn import metrics as sk
from torch.optim import SGD, lr_scheduler
from untyped import untyped

from gind.train import (
    Constant,
    Cosine,
    EpochRecord,
    Linear,
    LiveProgress,
    MetricsFile,
    PlainProgress,
    Restarts,
    Schedule,
    StepDecay,
    TensorBoard,
    show_progress,
    write_atomically,
)
from gind.train.metrics import METRICS, loss, metric
from gind.train.step import SolveStatistics
from gind.train.stopping import Patience


def record(epoch: int, **changes: float) -> EpochRecord:
    values = {"loss": 1.0, "val_loss": 0.5, "val": 0.75, "steps": 12.0, "residual": 1e-5, "gradient_steps": 7.0}
    return EpochRecord(epoch=epoch, best=epoch == 1, open=0, seconds=0.1, **{**values, **changes})


@MODEST
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_metrics_are_those_of_scikit_learn(seed: int, rows: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, 3, generator=generator)
    y = torch.randint(0, 3, (rows,), generator=generator)
    assert metric("accuracy", scores, y) == pytest.approx(sk.accuracy_score(y, scores.argmax(1)))
    many = torch.randint(0, 2, (rows, 3), generator=generator).float()
    expected = sk.f1_score(many, scores > 0, average="micro", zero_division=1.0)
    assert metric("micro_f1", scores, many) == pytest.approx(expected)
    if 0 < int((y == 1).sum()) < rows:
        two = (y == 1).long()
        assert metric("roc_auc", scores[:, :2], two) == pytest.approx(
            sk.roc_auc_score(two, scores[:, :2].double().softmax(1)[:, 1])
        )


def test_metrics_refuse_what_they_cannot_measure() -> None:
    with pytest.raises(ValueError, match="two classes"):
        metric("roc_auc", torch.zeros(4, 3), torch.tensor([0, 1, 0, 1]))
    with pytest.raises(ValueError, match="both classes"):
        metric("roc_auc", torch.zeros(4, 2), torch.zeros(4, dtype=torch.long))
    assert set(METRICS) == {"accuracy", "micro_f1", "roc_auc"}


def test_loss_is_the_mean_over_rows() -> None:
    scores, y = torch.randn(5, 3), torch.tensor([0, 2, 1, 1, 0])
    by_hand = -np.mean([float(torch.log_softmax(scores[i], 0)[y[i]]) for i in range(5)])
    assert float(loss(scores, y, "node")) == pytest.approx(by_hand, rel=1e-5)
    many = (torch.rand(5, 3) > 0.5).float()
    p = torch.sigmoid(scores)
    expected = -(many * p.log() + (1 - many) * (1 - p).log()).mean()
    assert float(loss(scores, many, "multilabel")) == pytest.approx(float(expected), rel=1e-5)


def torch_factors(make: Callable[..., lr_scheduler.LRScheduler], epochs: int, **arguments: float) -> list[float]:
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(optimizer, **arguments)
    factors = []
    for _ in range(epochs):
        factors.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        scheduler.step()
    return factors


def test_schedules_are_those_of_torch() -> None:
    def ours(schedule: Schedule) -> list[float]:
        return [schedule.factor(epoch, 12) for epoch in range(1, 13)]

    assert ours(Constant()) == [1.0] * 12
    assert ours(Cosine()) == pytest.approx(torch_factors(lr_scheduler.CosineAnnealingLR, 12, T_max=12))
    assert ours(Linear()) == pytest.approx(
        torch_factors(lr_scheduler.LinearLR, 12, start_factor=1.0, end_factor=0.0, total_iters=12)
    )
    assert ours(StepDecay(every=5, decay=0.3)) == pytest.approx(
        torch_factors(lr_scheduler.StepLR, 12, step_size=5, gamma=0.3)
    )
    assert ours(Restarts(period=4)) == pytest.approx(torch_factors(lr_scheduler.CosineAnnealingWarmRestarts, 12, T_0=4))
    assert ours(StepDecay(warmup=3, every=1000))[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cosine(warmup=-1),
        lambda: StepDecay(every=0),
        lambda: StepDecay(decay=0.0),
        lambda: StepDecay(decay=1.5),
        lambda: Restarts(period=0),
        lambda: untyped(Constant)(warmup=1.5),
    ],
)
def test_schedules_refuse_nonsense(make: type[Schedule]) -> None:
    with pytest.raises(ValueError, match=r"must be|needs"):
        make()


def test_patience_takes_the_highest_metric_then_the_lowest_loss() -> None:
    patience = Patience(3)
    assert patience.improves(1, 0.5, 1.0)
    assert not patience.improves(2, 0.5, 1.0), "a tie is no improvement"
    assert patience.improves(3, 0.5, 0.9)
    assert not patience.improves(4, 0.4, 0.1)
    assert not patience.exhausted(5)
    assert patience.exhausted(6)
    assert not Patience(0).exhausted(10**6)
    assert not Patience(2).improves(1, float("nan"), 0.1), "nan is never best"


def test_patience_by_loss_takes_the_lowest_loss_then_the_highest_metric() -> None:
    patience = Patience(3, best_by="loss")
    assert patience.improves(1, 0.5, 1.0)
    assert not patience.improves(2, 0.9, 1.1)
    assert not patience.improves(3, 0.5, 1.0), "a tie is no improvement"
    assert not patience.exhausted(3)
    assert patience.exhausted(4)
    assert patience.improves(4, 0.6, 1.0)
    assert patience.improves(5, 0.1, 0.9)
    assert not patience.improves(6, 0.9, float("nan")), "nan is never best"
    assert (patience.epoch, patience.value, patience.loss) == (5, 0.1, 0.9)


def test_patience_of_the_published_code_counts_worse_epochs_only() -> None:
    patience = Patience(2, "worse")
    assert patience.improves(1, 0.5, 1.0)
    assert not patience.improves(2, 0.4, 0.5)
    assert not patience.improves(3, 0.5, 1.1), "a tie with a higher loss is not best"
    assert not patience.exhausted(4), "but it starts the count anew"
    assert patience.exhausted(5)
    assert patience.improves(4, 0.6, 1.3)
    assert not patience.improves(5, 0.6, 1.2), "0.6 was better before, but at a loss of 1.0 there was a tie"
    assert patience.improves(6, 0.6, 1.0), "as low is low enough"
    assert (patience.epoch, patience.value, patience.loss) == (6, 0.6, 1.0)


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail() -> None:
        with write_atomically(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    with write_atomically(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]
    fresh = tmp_path / "fresh.txt"
    fresh.write_text("")
    assert path.stat().st_mode == fresh.stat().st_mode, "readable by whoever may read other new files"


def test_the_umask_of_the_process_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread could make a file that everybody may write to."""
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask is of the whole process"))
    with write_atomically(tmp_path / "file.txt") as temporary:
        temporary.write_text("new")


def test_metrics_file_holds_a_line_per_epoch_and_forgets_lost_ones(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path)
    file.start([], 5, "accuracy")
    for epoch in (1, 2, 3):
        file.epoch(record(epoch, val=float("nan")))
    lines = [json.loads(line) for line in path.read_text().splitlines()]  # before the end: nothing waits in a buffer
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert lines[0]["val"] is None
    file.end()
    again = MetricsFile(path)
    again.start([record(1)], 5, "accuracy")
    again.epoch(record(2, loss=7.0))
    again.end()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["epoch"], line["loss"]) for line in lines] == [(1, 1.0), (2, 7.0)]


def test_the_residual_of_solves_is_the_worst_that_was_measured() -> None:
    none, unknown = SolveStatistics(), SolveStatistics(2, 5.0, math.nan, 1.0, 2)
    known, worse = SolveStatistics(1, 3.0, 1e-4), SolveStatistics(3, 7.0, 1e-2, open=1)
    assert none + none == none
    assert none + known == known + none == known
    assert math.isnan((unknown + none).residual)
    assert math.isnan((unknown + unknown).residual)
    assert (unknown + known).residual == (known + unknown).residual == 1e-4
    both = known + worse
    assert (both.solves, both.steps, both.residual, both.open) == (4, 6.0, 1e-2, 1)


def test_a_residual_that_was_not_measured_is_not_shown() -> None:
    text = io.StringIO()
    progress = PlainProgress(Console(file=text, width=200))
    progress.start([], 1, "accuracy")
    progress.epoch(record(1, residual=math.nan))
    assert "steps 12+7" in text.getvalue()
    assert "residual" not in text.getvalue()


def test_plain_progress_prints_first_and_last_and_not_too_much() -> None:
    text = io.StringIO()
    progress = PlainProgress(Console(file=text, width=200))
    progress.start([], 100, "accuracy")
    for epoch in range(1, 101):
        progress.epoch(record(epoch))
    progress.end()
    lines = text.getvalue().splitlines()
    first = "epoch   1/100  loss 1.0000  val accuracy 0.7500 (best 0.7500)  steps 12+7  residual 1e-05"
    assert lines[0].startswith(first)
    assert lines[-1].startswith("epoch 100/100")
    assert len(lines) <= 21


def test_live_progress_shows_everything_in_a_terminal() -> None:
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=140)
    progress = show_progress(console)
    assert isinstance(progress, LiveProgress)
    assert isinstance(show_progress(Console(file=io.StringIO())), PlainProgress)
    progress.start([record(1)], 4, "micro_f1")
    progress.epoch(record(2, val=math.nan, residual=3e-4))
    progress.end()
    for word in ("2/4", "loss 1.0000", "micro_f1", "best 0.7500", "steps 12+7", "residual 3e-04"):
        assert word in text.getvalue()


def test_live_progress_fits_into_80_columns() -> None:
    text = io.StringIO()
    progress = LiveProgress(Console(file=text, force_terminal=True, width=80))
    progress.start([], 1000, "accuracy")
    progress.epoch(record(1, residual=3e-4))
    progress.epoch(record(1000, residual=3e-4))
    progress.end()
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue())
    last = [line for line in re.split(r"[\r\n]+", plain) if "1000/1000" in line][-1]
    for word in ("loss 1.0000", "val 0.7500", "(best 0.7500)", "steps 12+7", "res 3e-04"):
        assert word in last


def test_tensorboard_is_optional(tmp_path: Path) -> None:
    if importlib.util.find_spec("tensorboard") is None:
        with pytest.raises(ModuleNotFoundError, match=r"gind\[track\]"):
            TensorBoard(tmp_path)
        return
    board = TensorBoard(tmp_path)
    board.start([], 2, "accuracy")
    board.epoch(record(1, val=math.nan))
    board.end()
    assert os.listdir(tmp_path)
