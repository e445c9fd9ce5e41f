"""The two protocols of graph classification: who trains, what the test labels may decide, and what is refused."""

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_cases import TINY, command, write_molecules
from graphs import MODEST
from hypothesis import given
from hypothesis import strategies as st
from training_problems import cycles_and_paths

from gind import GIND
from gind.datasets import DATASETS, Dataset
from gind.errors import UserError
from gind.experiments import (
    evaluate_run,
    load_artefact,
    load_data,
    make_spec,
    open_data,
    run,
    set_up,
    setup,
    validate,
)
from gind.experiments.items import read_item
from gind.experiments.models import MODELS, defaults
from gind.experiments.protocol import CHOICES, DIGITS, best_epoch, parts_of
from gind.experiments.quick import shrink
from gind.experiments.sheet import Cell
from gind.experiments.spec import Spec
from gind.train import FitOptions, OptionError, Problem, evaluate, fit

SMALL = {"dataset": "mutag", "hidden": 4, "lr": 0.05, "dropout": 0.0, "batch_size": 8}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_molecules(tmp_path / "data")


def spec_of(protocol: str, **keys: Any) -> Spec:
    return make_spec({**SMALL, "epochs": 4, **keys, "protocol": protocol})


def relabel(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """From now on every graph of this part of split 0 is loaded with the other label; the splits stay."""

    def load_otherwise(*arguments: Any, **options: Any) -> Dataset:
        dataset = load_data(*arguments, **options)
        graphs = list(dataset.graphs)
        for number in getattr(dataset.split(0), part).tolist():
            graphs[number] = graphs[number].clone()
            graphs[number].y = 1 - graphs[number].y
        return dataclasses.replace(dataset, graphs=tuple(graphs))

    monkeypatch.setattr(setup, "load_data", load_otherwise)


def trained(spec: Spec, directory: Path, root: Path) -> tuple[dict[str, Any], bytes]:
    """The report without its times, and the bytes of the weights."""
    report = run(spec, directory, root=root).report
    report.pop("seconds")
    return report, (directory / "weights.safetensors").read_bytes()


def test_all_graphs_outside_of_the_fold_train_and_none_validates(root: Path) -> None:
    honest = set_up(spec_of("honest"), root)
    paper = set_up(spec_of("paper"), root, test_curve=True)
    parts = honest.split
    assert torch.equal(paper.split.train, torch.cat([parts.train, parts.val]).sort().values)
    assert (len(paper.split.val), paper.split.test.tolist()) == (0, parts.test.tolist())
    assert len(paper.problem.train) == len(parts.train) + len(parts.val) == 24 - len(parts.test)
    labels = torch.cat([honest.dataset.graphs[number].y for number in parts.test.tolist()])
    assert torch.equal(torch.cat([part.y for part in paper.problem.val]), labels)
    assert (honest.problem.watched, paper.problem.watched) == ("val", "test")
    assert parts_of(parts, "honest") is parts


def test_the_curve_has_every_epoch_and_the_last_weights_stay(tmp_path: Path, root: Path) -> None:
    long, _ = trained(spec_of("paper", epochs=6), tmp_path / "long", root)
    short, _ = trained(spec_of("paper", epochs=3), tmp_path / "short", root)
    assert (len(long["curve"]), len(short["curve"])) == (6, 3)
    assert long["curve"][:3] == short["curve"]
    for report in (long, short):
        assert round(report["test"]["accuracy"], DIGITS) == report["curve"][-1]
        assert report["validation"] is None
        assert report["training"]["best_epoch"] == report["training"]["epochs"] == len(report["curve"])
        assert report["training"]["stopped_by"] == "epochs"
        assert report["config"]["train"]["patience"] == 0
    text = (tmp_path / "long" / "report.json").read_text()
    assert len([line for line in text.splitlines() if '"curve"' in line and line.rstrip().endswith("]")]) == 1
    lines = [json.loads(line) for line in (tmp_path / "long" / "metrics.jsonl").read_text().splitlines()]
    assert [round(line["test"], DIGITS) for line in lines] == long["curve"]
    assert all("val" not in line and "val_loss" not in line for line in lines)
    artefact = load_artefact(tmp_path / "short")
    seen = evaluate_run(artefact, open_data(artefact, None, root, labels=True), 0)
    assert set(seen) == {"dataset", "split", "train", "test"}
    assert round(seen["test"]["accuracy"], DIGITS) == short["curve"][-1]


def test_a_curve_goes_on_after_a_stop(tmp_path: Path, root: Path) -> None:
    keys = {"schedule": "constant"}  # a rate that falls until the last epoch knows how many there are
    whole, weights = trained(spec_of("paper", epochs=5, **keys), tmp_path / "whole", root)
    run(spec_of("paper", epochs=2, **keys), tmp_path / "again", root=root)
    outcome = run(spec_of("paper", epochs=5, **keys), tmp_path / "again", root=root, resume=True)
    assert outcome.report["curve"] == whole["curve"]
    assert (tmp_path / "again" / "weights.safetensors").read_bytes() == weights


def test_honest_runs_do_not_depend_on_test_labels(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, best epoch, validation, certificate: all but what is measured on the test part itself."""
    before, weights = trained(spec_of("honest", epochs=8), tmp_path / "before", root)
    chosen = validate(spec_of("honest", epochs=8), root=root)
    relabel(monkeypatch, "test")
    after, same = trained(spec_of("honest", epochs=8), tmp_path / "after", root)
    assert weights == same
    assert before["test"] != after["test"]
    for report in (before, after):
        del report["test"], report["majority"]
    assert before == after
    assert "curve" not in before
    again = validate(spec_of("honest", epochs=8), root=root)
    assert (chosen.best_epoch, chosen.best_value, chosen.best_loss) == (
        again.best_epoch,
        again.best_value,
        again.best_loss,
    )


def test_in_the_papers_protocol_test_labels_change_the_curve_alone_and_validation_labels_train(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, weights = trained(spec_of("paper"), tmp_path / "before", root)
    with monkeypatch.context() as patch:
        relabel(patch, "test")
        after, same = trained(spec_of("paper"), tmp_path / "after", root)
    assert weights == same
    assert [a + b for a, b in zip(before["curve"], after["curve"], strict=True)] == pytest.approx([1.0] * 4, abs=1e-5)
    relabel(monkeypatch, "val")
    assert trained(spec_of("paper"), tmp_path / "other", root)[1] != weights


def test_nothing_is_chosen_while_the_test_part_is_watched() -> None:
    data = cycles_and_paths()
    problem = Problem.watching_test(data, data.split(0), 8)
    torch.manual_seed(0)
    model = GIND(2, 4, 2, task="graph")
    report = fit(model, problem, epochs=7, patience=1, lr=0.5, batch_size=8)
    assert (report.best_epoch, len(report.history), report.stopped_by) == (7, 7, "epochs")
    assert evaluate(model, problem.val, "graph", "accuracy").value == report.history[-1].val == report.best_value
    assert "; test accuracy" in str(report)
    with pytest.raises(OptionError, match="eval_every"):
        fit(model, problem, epochs=2, eval_every=2)


def test_no_default_says_another_protocol_and_every_graph_set_has_folds() -> None:
    for name in DATASETS:
        for model in MODELS:
            assert "protocol" not in json.dumps(defaults(model, name))
    assert all(entry.splits == "kfold" for entry in DATASETS.values() if entry.task == "graph")
    assert make_spec({"dataset": "mutag"}).data.protocol == "honest" == next(iter(CHOICES))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"dataset": "wine"}, "cross-validation of graph classification; the task of wine is node"),
        ({"splits": "random"}, "needs folds, got splits 'random'"),
        ({"patience": 5}, "patience must be 0, got 5"),
        ({"eval_every": 2}, "leave `eval_every` at 1"),
        ({"model": {"name": "wl"}, "hidden": None, "dropout": None}, "trained without epochs"),
        ({"protocol": "dishonest"}, "protocol must be one of honest, paper, got 'dishonest'"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    tmp_path: Path, root: Path, keys: dict[str, Any], message: str
) -> None:
    table = {**SMALL, "epochs": 2, "protocol": "paper", **keys}
    table = {key: value for key, value in table.items() if value is not None}
    with pytest.raises(UserError, match=message) as caught:
        run(make_spec(table), tmp_path / "run", root=root)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_the_small_item_has_both_protocols_and_one_candidate(root: Path) -> None:
    sheet = read_item("graphs")
    assert sheet is not None
    small = shrink(sheet, root)
    assert {cell.system for cell in small.cells if cell.model == "gind"} == {"gind", "gind+paper"}


def test_no_search_of_settings_may_look(root: Path) -> None:
    for attempt in (lambda: validate(spec_of("paper"), root=root), lambda: set_up(spec_of("paper"), root)):
        with pytest.raises(UserError, match="compared on validation"):
            attempt()


def test_a_report_of_the_other_protocol_is_that_of_another_run(root: Path, tmp_path: Path) -> None:
    """Also where the sheet says nothing about protocols, and for reports that are older than the key."""
    plain, paper = Cell("mutag", "gind", 0), Cell("mutag", "gind", 0, keys=(("protocol", "paper"),), variant="paper")
    same = Cell("mutag", "gind", 0, keys=(("data.protocol", "honest"),))
    honest = run(spec_of("honest", epochs=1), tmp_path / "honest", root=root).report
    curve = run(spec_of("paper", epochs=1), tmp_path / "paper", root=root).report
    assert (plain.mismatch(honest), same.mismatch(honest), paper.mismatch(curve)) == ("", "", "")
    assert "protocol 'paper', not 'honest'" in plain.mismatch(curve)
    assert "protocol 'honest', not 'paper'" in paper.mismatch(honest)
    del honest["config"]["data"]["protocol"]
    assert plain.mismatch(honest) == ""
    assert "protocol 'honest', not 'paper'" in paper.mismatch(honest)


def test_the_command_says_that_test_labels_choose(tmp_path: Path, root: Path) -> None:
    lines = {}
    for protocol in ("honest", "paper"):
        line = f"train mutag --data {root} --out {tmp_path / protocol} --set protocol={protocol}"
        outcome = command(f"{line} {TINY.replace('--quiet ', '')}")
        assert outcome.code == 0, outcome.stderr
        lines[protocol] = " ".join(outcome.stdout.split())
    assert "test labels choose it" in lines["paper"]
    assert "test accuracy 0." in lines["paper"]
    assert "val accuracy" not in lines["paper"]
    assert "test labels" not in lines["honest"]
    assert "val accuracy" in lines["honest"]
    refused = command(f"train wine --out {tmp_path / 'wine'} --set protocol=paper {TINY}")
    assert refused.code == 2
    assert refused.stderr.count("\n") == 1
    settings = command(f"train mutag --data {root} --out {tmp_path / 'nested'} --set protocol=nested {TINY}")
    assert settings.code == 2, "what chooses among runs is no way to train one"
    assert "one of honest, paper" in settings.stderr
    shown = command("keys").stdout
    assert any("protocol" in line and '"honest"' in line and "honest | paper" in line for line in shown.splitlines())


@MODEST
@given(
    st.integers(1, 4).flatmap(lambda epochs: st.lists(st.lists(st.integers(0, 19), min_size=epochs, max_size=epochs)))
)
def test_the_best_epoch_is_the_first_with_the_highest_mean(right: list[list[int]]) -> None:
    if not right:
        return
    curves = [[round(count / 19, DIGITS) for count in fold] for fold in right]
    means = [sum(Fraction(str(fold[epoch])) for fold in curves) for epoch in range(len(curves[0]))]
    assert best_epoch(curves) == means.index(max(means)) + 1


def test_ties_that_floats_would_break() -> None:
    assert 0.1 + 0.2 != 0.3 + 0.0
    assert best_epoch([[0.3, 0.1], [0.0, 0.2]]) == 1
    assert best_epoch([[0.1, 0.3], [0.2, 0.0]]) == 1
    assert FitOptions().patience > 0  # what the paper's protocol must not inherit
