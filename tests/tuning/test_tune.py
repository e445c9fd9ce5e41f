"""A search: what it tries first, what it keeps, and that it goes on after any kill as if nothing had happened."""

import csv
import json
import math
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_cases import Child, command
from tuning_cases import write_search, write_split_graph

from gind.experiments import RunError, Spec, make_spec, run, set_up, validate, worker
from gind.tuning import read_search, tune, workers
from gind.tuning.study import Study, TuningError

Validate = Callable[..., Any]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a graph; workers are forked, which is quick and takes our changes along."""
    write_split_graph(tmp_path / "graph")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker, "START", "fork")
    return tmp_path


def use(monkeypatch: pytest.MonkeyPatch, function: Validate) -> None:
    """Another function in place of the training."""
    monkeypatch.setattr(workers, "validate", function)


def pretend(spec: Spec, **_: Any) -> Any:
    """A training without training: best at lr = 0.02, the same on every split."""
    lr = spec.train.lr
    value = 1 - abs(math.log10(lr) - math.log10(0.02)) / 4
    return SimpleNamespace(finished=True, best_value=value, best_loss=spec.model_options["hidden"] * lr)


def rows(path: Path = Path("tuned/search/graph.csv")) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_defaults_come_first_and_the_best_settings_train(place: Path) -> None:
    write_search(place)
    outcome = command("tune search.toml")
    assert outcome.code == 0, outcome
    tried = rows()
    assert [row["trial"] for row in tried] == list("012345")
    assert [row["default"] for row in tried] == ["yes"] + ["no"] * 5
    default = make_spec({"dataset": "graph/", "model": "mlp", "epochs": 3})
    assert float(tried[0]["lr"]) == default.train.lr
    report = validate(default)
    assert tried[0]["validation"] == f"{report.best_value:.6f}"
    assert tried[0]["loss"] == f"{report.best_loss:.6f}"
    best = max(tried, key=lambda row: (row["validation"], -float(row["loss"])))
    assert float(best["validation"]) >= report.best_value

    outcome = command("train --config tuned/search/graph.toml --out run --quiet")
    assert outcome.code == 0, outcome
    trained = json.loads((place / "run/report.json").read_text())
    assert f"{trained['validation']['accuracy']:.6f}" == best["validation"]
    assert f"{trained['validation']['loss']:.6f}" == best["loss"]
    assert trained["config"]["train"]["lr"] == float(best["lr"])


def test_workers_are_processes_of_their_own(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way users start them, two at a time."""
    monkeypatch.setattr(worker, "START", "spawn")
    write_search(place, ("trials = 6", "trials = 4"))
    outcome = command("tune search.toml --jobs 2 --out there")
    assert outcome.code == 0, outcome
    tried = rows(Path("there/search/graph.csv"))
    assert [row["trial"] for row in tried] == list("0123")
    assert {row["state"] for row in tried} <= {"complete", "pruned"}
    assert "4/4" in outcome.stdout
    assert "the best trials" in outcome.stdout


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_search_finds_the_best(place: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    use(monkeypatch, pretend)
    write_search(place, ("trials = 6", "trials = 30"), ('"0"', '"0"'))
    with tune(read_search(place / "search.toml"), "graph/", place / "tuned", jobs=jobs) as tuning:
        tried = list(tuning)
        assert sorted(each.number for each in tried) == list(range(30))
        best = tuning.study.best()
        assert best is not None
        assert 0.01 < best.values["lr"] < 0.04
        assert set(tuning.study.importance()) == {"lr", "hidden", "dropout"}


def test_test_labels_change_nothing(place: Path) -> None:
    write_search(place)
    command("tune search.toml --out right")
    write_split_graph(place / "graph", test_labels="aab")
    command("tune search.toml --out wrong")
    for name in ("graph.csv", "graph.toml"):
        assert (place / "right/search" / name).read_text() == (place / "wrong/search" / name).read_text()


def test_a_trial_never_evaluates_the_test_part(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any label in the test part a run cannot be, a trial can."""
    spec = make_spec({"dataset": "graph/", "model": "mlp", "epochs": 2})
    whole = set_up(spec).dataset

    def blind(*_: Any, **__: Any) -> Any:
        whole.graphs[0].y[whole.splits[0].test] = -1
        return whole

    monkeypatch.setattr("gind.experiments.setup.load_data", blind)
    assert validate(spec).finished
    with pytest.raises(Exception, match="has no label"):
        run(spec, place / "run")


def test_the_same_search_has_the_same_trials(place: Path) -> None:
    write_search(place)
    command("tune search.toml --out one")
    command("tune search.toml --out two")
    assert (place / "one/search/graph.csv").read_bytes() == (place / "two/search/graph.csv").read_bytes()
    write_search(place, ("trials = 6", "trials = 6\nseed = 1"))
    command("tune search.toml --out three")
    assert (place / "one/search/graph.csv").read_bytes() != (place / "three/search/graph.csv").read_bytes()


def test_equal_metrics_are_decided_by_the_loss(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, lambda spec, **_: SimpleNamespace(finished=True, best_value=0.5, best_loss=spec.train.lr))
    write_search(place)
    with tune(read_search(place / "search.toml"), "graph/", place / "tuned") as tuning:
        tried = list(tuning)
        best = tuning.study.best()
    assert best is not None
    assert best.loss == min(each.loss for each in tried if each.loss is not None)


def test_the_metric_of_every_split_is_kept(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {0: 0.25, 1: 0.75, 2: 0.6, 3: 0.1}
    use(monkeypatch, lambda spec, **_: SimpleNamespace(finished=True, best_value=found[spec.split], best_loss=1.0))
    write_search(place, ('["graph/"]', '["wine"]'), ('"0"', '"0-3"'))
    with tune(read_search(place / "search.toml"), "wine", place / "tuned") as tuning:
        tried = list(tuning)
    assert all(each.by_split == pytest.approx(list(found.values())) for each in tried)


@pytest.mark.parametrize("least", [1, 3])
def test_a_trial_far_below_the_others_is_pruned(place: Path, monkeypatch: pytest.MonkeyPatch, least: int) -> None:
    use(monkeypatch, pretend)
    trials = f"trials = 20\nprune_after = {least}"
    write_search(place, ('["graph/"]', '["wine"]'), ('"0"', '"0-3"'), ("trials = 6", trials))
    with tune(read_search(place / "search.toml"), "wine", place / "tuned") as tuning:
        tried = list(tuning)
        best = tuning.study.best()
    pruned = [each for each in tried if each.state == "pruned"]
    assert pruned
    assert all(least <= each.splits < 4 for each in pruned)
    assert any(each.splits == least for each in pruned)
    assert all(each.splits == 4 for each in tried if each.state == "complete")
    assert best is not None
    assert best.value == max(each.value for each in tried if each.value is not None)


def test_failures_are_kept_and_the_search_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverge(spec: Spec, **_: Any) -> Any:
        if spec.model_options["hidden"] == 2:
            raise RunError("the loss\nis not finite")
        return pretend(spec)

    use(monkeypatch, diverge)
    write_search(place)
    assert command("tune search.toml").code == 0
    states = {row["hidden"]: (row["state"], row["error"]) for row in rows()[1:]}
    assert states == {"2": ("failed", "RunError: the loss is not finite"), "4": ("complete", "")}
    assert len(rows()) == 6

    use(monkeypatch, lambda spec, **_: SimpleNamespace(finished=True, best_value=-math.inf, best_loss=math.inf))
    outcome = command("tune search.toml --out none")
    assert outcome.code == 1
    assert "No trial could be trained" in outcome.stdout
    assert not (place / "none/search/graph.toml").exists()


def test_a_killed_worker_is_replaced_and_its_trial_tried_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_search(place)
    use(monkeypatch, pretend)
    command("tune search.toml --out whole")

    def die_once(spec: Spec, **_: Any) -> Any:
        mark = place / f"{spec.train.lr}"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return pretend(spec)

    use(monkeypatch, die_once)
    outcome = command("tune search.toml")
    assert outcome.code == 0, outcome
    assert (place / "tuned/search/graph.csv").read_bytes() == (place / "whole/search/graph.csv").read_bytes()


def test_what_kills_its_worker_again_has_failed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(spec: Spec, **_: Any) -> Any:
        if spec.model_options["hidden"] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return pretend(spec)

    use(monkeypatch, die)
    write_search(place)
    assert command("tune search.toml --jobs 2").code == 0
    assert len(rows()) == 6
    for row in rows()[1:]:
        assert row["state"] == ("failed" if row["hidden"] == "2" else "complete")
        assert ("Out of memory?" in row["error"]) == (row["hidden"] == "2")


def test_a_search_killed_at_any_moment_ends_the_same(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(spec: Spec, **_: Any) -> Any:
        time.sleep(0.02)
        return pretend(spec)

    use(monkeypatch, slowly)
    write_search(place, ('["graph/"]', '["wine"]'), ('"0"', '"0-1"'), ("trials = 6", "trials = 16"))
    assert command("tune search.toml --out whole").code == 0
    journal = place / "tuned/search/wine.journal"
    generator = random.Random(0)
    kills = 0
    while True:
        enough = lines(journal) + generator.randint(1, 60)
        child = Child("tune search.toml", place / "log")
        wait_until(lambda: child.ended or lines(journal) >= enough)  # noqa: B023 (called at once)
        if child.ended or not child.kill_after(0):
            break
        kills += 1
    assert child.status == 0, child.text
    assert kills >= 2
    for name in ("wine.csv", "wine.toml"):
        assert (place / "tuned/search" / name).read_text() == (place / "whole/search" / name).read_text()


def test_workers_do_not_outlive_a_killed_search(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(spec: Spec, **_: Any) -> Any:
        (place / f"pid-{os.getpid()}").touch()
        time.sleep(50)

    use(monkeypatch, sleep)
    write_search(place)
    child = Child("tune search.toml --jobs 2", place / "log")
    wait_until(lambda: len(list(place.glob("pid-*"))) == 2)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    pids = [int(path.name[4:]) for path in place.glob("pid-*")]
    wait_until(lambda: not any(map(alive, pids)))


def test_ctrl_c_stops_and_says_how_to_go_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(spec: Spec, **_: Any) -> Any:
        (place / "begun").touch()
        time.sleep(50)

    use(monkeypatch, sleep)
    write_search(place)
    child = Child("tune search.toml", place / "log")
    wait_until((place / "begun").exists)
    os.kill(child.pid, signal.SIGINT)
    assert child.wait() == 1
    assert "The same command goes on" in child.text
    use(monkeypatch, pretend)
    assert command("tune search.toml").code == 0
    assert len(rows()) == 6


def test_half_a_line_in_the_journal_is_forgotten(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, pretend)
    write_search(place)
    command("tune search.toml --out whole")
    command("tune search.toml --trials 3")
    journal = place / "tuned/search/graph.journal"
    journal.write_bytes(journal.read_bytes()[:-7])
    Path(f"{journal}.lock").symlink_to(journal)
    assert command("tune search.toml").code == 0
    assert (place / "tuned/search/graph.csv").read_bytes() == (place / "whole/search/graph.csv").read_bytes()


def test_more_trials_go_on_and_a_finished_search_rests(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, pretend)
    write_search(place)
    command("tune search.toml --trials 3")
    first = rows()
    assert len(first) == 3
    command("tune search.toml")
    assert rows()[:3] == first
    assert len(rows()) == 6
    outcome = command("tune search.toml")
    assert outcome.code == 0
    assert "6 of 6 trials are there" in outcome.stdout
    assert len(rows()) == 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("epochs = 3", "epochs = 4"), "set.train.epochs was 3, is 4"),
        (("high = 0.6", "high = 0.8"), "search.dropout.high was 0.6, is 0.8"),
        (("[2, 4]", "[2, 8]"), "search.hidden"),
        (("trials = 6", "trials = 6\nseed = 2"), "set.seed was 0, is 2"),
        (('"mlp"', '"gcn"'), "mlp"),
    ],
)
def test_another_search_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], words: str
) -> None:
    use(monkeypatch, pretend)
    write_search(place)
    command("tune search.toml --trials 2")
    write_search(place, change)
    outcome = command("tune search.toml")
    assert outcome.code == 2
    assert len(outcome.stderr.splitlines()) == 1
    assert "was begun with another search" in outcome.stderr
    assert words in outcome.stderr


def test_a_search_that_prunes_later_is_another(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, pretend)
    both = (('["graph/"]', '["wine"]'), ('"0"', '"0-1"'))
    write_search(place, *both)
    command("tune search.toml --trials 2")
    write_search(place, *both, ("trials = 6", "trials = 6\nprune_after = 1"))
    assert command("tune search.toml --trials 3").code == 0
    write_search(place, *both, ("trials = 6", "trials = 6\nprune_after = 2"))
    outcome = command("tune search.toml --trials 4")
    assert outcome.code == 2
    assert "prune_after was None, is 2" in outcome.stderr


def test_another_file_is_not_taken_for_a_journal(place: Path) -> None:
    write_search(place)
    (place / "tuned/search").mkdir(parents=True)
    (place / "tuned/search/graph.journal").write_text("something\nelse\n")
    outcome = command("tune search.toml")
    assert outcome.code == 2
    assert "is no journal of a search" in outcome.stderr


def test_one_process_per_search(place: Path) -> None:
    search = read_search(write_search(place))
    with (
        tune(search, "graph/", place / "tuned"),
        pytest.raises(TuningError, match="Another process"),
        tune(search, "graph/", place / "tuned"),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('["graph/"]', '["nowhere/"]'), "nowhere"),
        (('"0"', '"0,5"'), "no split 5"),
        (('["graph/"]', '["mutag"]'), "mutag"),
        (("trials = 6", "trials = 6\nprune_after = 2"), "prune_after = 2, but splits has 1"),
    ],
)
def test_what_no_trial_could_do_is_refused_at_once(place: Path, change: tuple[str, str], words: str) -> None:
    write_search(place, change)
    outcome = command("tune search.toml")
    assert outcome.code == 2, outcome
    assert words in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1


def test_partly_drawn_trials_are_drawn_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill between two parameters of a trial."""
    search = read_search(write_search(place))
    journal = place / "j"
    whole = Study(search, "graph/", journal)
    whole.add(whole.ask(), 0.5, 1.0)
    expected = whole.ask().values
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-2]))
    again = Study(search, "graph/", journal).ask()
    assert again.values == expected


def test_without_optuna_the_extra_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_search(place)
    for name in [name for name in sys.modules if name.startswith(("gind.tuning", "gind.cli.tuning"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("gind.cli.tuning", raising=False)
    monkeypatch.setitem(sys.modules, "optuna", None)
    outcome = command("tune search.toml")
    assert outcome.code == 2
    assert outcome.stderr == "gind: Optuna is not installed: pip install 'gind[tune]'.\n"


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60  # two processes that import torch on a busy machine
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
