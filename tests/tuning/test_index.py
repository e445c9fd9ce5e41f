"""The index of tuned/: every winner that is kept has a line, which says what the defaults make of it today."""

import csv
import functools
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from gind.experiments import make_spec
from gind.experiments.sheet import read_sheet
from gind.experiments.toml import read_toml
from gind.tuning import Search, read_search
from gind.tuning.space import look_up

ROOT = Path(__file__).parents[2]
TUNED = ROOT / "tuned"
SEARCHES = ROOT / "experiments" / "searches"


class Line(NamedTuple):
    """A line of the table, as it is written."""

    search: str
    model: str
    dataset: str
    trials: str
    asked: str
    winner: str
    otherwise: str


@functools.cache
def lines() -> dict[tuple[str, str], Line]:
    """By directory and dataset."""
    rows = [row for row in (TUNED / "README.md").read_text(encoding="utf-8").splitlines() if row.startswith("| [")]
    cells = [Line(*(cell.strip() for cell in row.strip("|").split("|"))) for row in rows]
    found = {(re.sub(r"^\[(.+)\]\(.*$", r"\1", line.search), line.dataset): line for line in cells}
    assert len(found) == len(rows), "two lines on one winner"
    return found


def search(name: str) -> Search:
    return read_search(SEARCHES / f"{name}.toml")


def trials(name: str, dataset: str) -> list[dict[str, str]]:
    with (TUNED / name / f"{dataset}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def otherwise(name: str, dataset: str) -> list[str]:
    """The keys of a sheet that the defaults of today have otherwise than its winner, searched ones first."""
    asked = search(name)
    winner = make_spec({**asked.fixed, **read_toml(TUNED / name / f"{dataset}.toml")})
    today = make_spec({"dataset": dataset, "model": asked.model})
    return [key for key in [*asked.space, *asked.fixed] if look_up(winner, key) != look_up(today, key)]


WINNERS = sorted((path.parent.name, path.stem) for path in TUNED.glob("*/*.toml"))


def test_every_winner_and_no_other_has_a_line() -> None:
    assert sorted(lines()) == WINNERS
    assert {name for name, _ in lines()} == {path.name for path in TUNED.iterdir() if path.is_dir()}


def test_every_search_is_named() -> None:
    text = (TUNED / "README.md").read_text(encoding="utf-8")
    for path in SEARCHES.glob("*.toml"):
        assert f"[{path.stem}](../experiments/searches/{path.name})" in text
        never = "Not run to its end" in path.read_text(encoding="utf-8")
        assert never == (path.stem not in {name for name, _ in lines()}), path.name


@pytest.mark.parametrize(("name", "dataset"), WINNERS)
def test_a_line_says_what_the_files_say(name: str, dataset: str) -> None:
    line, asked = lines()[name, dataset], search(name)
    assert line.search == f"[{name}](../experiments/searches/{name}.toml)"
    assert (line.model, line.trials, line.asked) == (
        asked.model,
        str(len(trials(name, dataset))),
        str(asked.trials),
    )
    assert dataset in asked.datasets
    assert line.otherwise == ", ".join(f"`{key}`" for key in otherwise(name, dataset))


@pytest.mark.parametrize(("name", "dataset"), WINNERS)
def test_live_is_what_the_defaults_run(name: str, dataset: str) -> None:
    line, asked = lines()[name, dataset], search(name)
    same = not set(otherwise(name, dataset)) & set(asked.space)
    assert same == (line.winner in ("live", "begun"))
    assert same or re.match(r"superseded by |never adopted", line.winner)
    begun = len(trials(name, dataset)) < asked.trials
    assert begun == (line.winner == "begun")


@pytest.mark.parametrize(("name", "dataset"), WINNERS)
def test_what_supersedes_a_winner_is_live(name: str, dataset: str) -> None:
    found = re.match(r"superseded by ([\w-]+)$", lines()[name, dataset].winner)
    if found:
        assert lines()[found[1], dataset].winner == "live"
        assert lines()[found[1], dataset].model == lines()[name, dataset].model


@pytest.mark.parametrize(("name", "dataset"), WINNERS)
def test_the_sheet_searched_runs_the_winners_that_are_said_to_run_there(name: str, dataset: str) -> None:
    line, asked = lines()[name, dataset], search(name)
    cells = read_sheet(ROOT / "experiments" / "searched.toml").cells
    specs = [make_spec(cell.table) for cell in cells if (cell.model, cell.dataset) == (line.model, dataset)]
    assert ("`searched`" in line.winner) == bool(specs)
    winner = make_spec(read_toml(TUNED / name / f"{dataset}.toml"))
    assert all(look_up(spec, key) == look_up(winner, key) for spec in specs for key in asked.space)
