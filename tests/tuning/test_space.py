"""Ranges in a file: what they mean, and that whatever is wrong with them is refused in a sentence."""

import re
from pathlib import Path
from typing import Any

import pytest
from tuning_cases import SEARCH, write_search

from gind.experiments import ConfigError
from gind.tuning import Search, read_search
from gind.tuning.space import Choice, Range


def read(directory: Path, *changes: tuple[str, str]) -> Search:
    return read_search(write_search(directory, ('["graph/"]', '["wine"]'), *changes))


def test_ranges_have_the_types_of_their_keys(tmp_path: Path) -> None:
    more = (
        "[search]\nclip = { low = 1, high = 4 }\nlayers = { low = 2, high = 8, step = 2 }\nschedule.warmup = [0, 5]\n"
    )
    search = read(tmp_path, ("[search]\n", more))
    assert search.space == {
        "clip": Range(float, 1.0, 4.0),
        "layers": Range(int, 2, 8, step=2),
        "schedule.warmup": Choice({"0": 0, "5": 5}),
        "lr": Range(float, 1e-3, 1e-1, log=True),
        "hidden": Choice({"2": 2, "4": 4}),
        "dropout": Range(float, 0.0, 0.6, step=0.2),
    }
    assert (search.name, search.title, search.trials, search.seed) == ("search", "a search", 6, 0)
    values = {"schedule.warmup": 5, "hidden": 4}
    assert search.settings("wine", values) == {
        "dataset": "wine",
        "seed": 0,
        "model": {"name": "mlp"},
        "epochs": 3,
        "schedule": {"warmup": 5},
        "hidden": 4,
    }
    assert search.spec("wine", values, 7).table()["train"]["schedule"] == {"kind": "constant", "warmup": 5}


def test_drawn_numbers_are_short_and_inside() -> None:
    assert Range(float, 1e-3, 1e-1, log=True).value(0.0123456789) == 0.01235
    assert Range(float, 0.00012345678, 1.0).value(0.00012345678) == 0.0001235
    assert Range(float, 0.00012344, 1.0).value(0.00012344) == 0.00012344
    assert Range(float, 0.0, 0.9, step=0.1).value(0.1 * 3) == 0.3
    assert type(Range(int, 1, 9).value(4)) is int


@pytest.mark.parametrize(("value", "inside"), [(0.2, True), (0.1, False), (0.0, True), (0.8, False), ("none", False)])
def test_a_default_may_lie_outside(value: Any, inside: bool) -> None:
    assert Range(float, 0.0, 0.6, step=0.2).holds(value) == inside


def test_defaults_are_drawn_where_they_lie_inside(tmp_path: Path) -> None:
    changes = (
        ('"mlp"', '"gind"'),
        ("hidden = [2, 4]", "scaling = ['symmetric', 'row']"),
        ("lr = { low = 1e-3", "lr = { low = 0.05"),
    )
    search = read(tmp_path, *changes)
    row = {"kind": "row", "augmented": True, "loops": False, "factor": 2.0}
    assert search.default("wine") == {"lr": 0.01, "scaling": row, "dropout": 0.5}
    assert search.default_draws("wine") == {"scaling": '"row"'}  # 0.5 is no multiple of 0.2


REFUSED = {
    "key of the file": (("trials = 6", "trails = 6"), "no key 'trails'. Did you mean 'trials'"),
    "searched key": (("hidden = ", "hiden = "), "no key 'hiden'. Did you mean 'hidden'"),
    "fixed key": (("epochs = 3", "epoch = 3"), "no key 'epoch'. Did you mean 'epochs'"),
    "model": (('"mlp"', '"mpl"'), "no model 'mpl'. Did you mean 'mlp'"),
    "dataset": (('"wine"', '"wien"'), "'wien'"),
    "no datasets": (('["wine"]', "[]"), "datasets must be a list"),
    "twice the same": (('["wine"]', '["wine", "wine"]'), "same name"),
    "splits": (('"0"', '"a"'), "0-9"),
    "trials": (("trials = 6", "trials = 0"), "trials must be a whole number >= 1"),
    "missing": (('model = "mlp"\n', ""), "model is missing"),
    "a fixed value": (("hidden = [2, 4]", "hidden = 4"), "search.hidden must be a list of choices or a table"),
    "one choice": (("[2, 4]", "[2]"), "search.hidden has 1 choices"),
    "equal choices": (("[2, 4]", "[2, 2]"), "same choice twice"),
    "choice of another type": (("[2, 4]", "[2, 4.5]"), "hidden must be a whole number, got 4.5"),
    "choice out of bounds": (("low = 0.0, high = 0.6, step = 0.2", "low = 0.0, high = -1.0"), "low must be below high"),
    "misspelt range": (("log = true", "lag = true"), "no key 'lag' in search.lr. Did you mean 'log'"),
    "no high": ((", high = 0.6, step = 0.2", ""), "search.dropout has no high"),
    "no whole number": (("[2, 4]", "{ low = 2, high = 4.5 }"), "search.hidden.high must be a whole number"),
    "infinite": (("high = 0.6", "high = inf"), "search.dropout.high must be a finite number"),
    "text": (("high = 0.6", "high = 'x'"), "search.dropout.high must be a finite number"),
    "log of 0": (("low = 1e-3", "low = 0.0"), "search.lr: log needs low > 0"),
    "log and step": (("log = true", "log = true, step = 0.1"), "log needs low > 0 and has no step"),
    "steps that miss high": (("step = 0.2", "step = 0.25"), "whole number of steps"),
    "step of 0": (("step = 0.2", "step = 0.0"), "whole number of steps"),
    "range of a text": (("hidden = [2, 4]", "optimizer = { low = 1, high = 2 }"), "optimizer must be one of"),
    "fixed and searched": (("epochs = 3", "lr = 0.1"), "lr is both in [set] and in [search]"),
    "a searched split": (("hidden = ", "split = "), "split is not a key for [search]"),
    "a fixed seed": (("epochs = 3", "seed = 3"), "seed is not a key for [set]"),
    "nothing to search": ((SEARCH.partition("[search]")[2], ""), "[search] is empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    change, words = REFUSED[name]
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, change)
    message = str(caught.value)
    assert words in message
    assert str(tmp_path / "search.toml") in message
    assert "\n" not in message
    assert message.endswith((".", "?"))


def test_datasets_can_be_chosen(tmp_path: Path) -> None:
    search = read(tmp_path, ('["wine"]', '["wine", "karate"]'))
    assert search.select(["karate"], None).datasets == ("karate",)
    assert search.select([], 9).trials == 9
    with pytest.raises(ConfigError, match=r"no dataset 'karat'. Did you mean 'karate'"):
        search.select(["karat"], None)


def test_the_documented_search_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/tuning.md").read_text(encoding="utf-8")
    whole, part = re.findall(r"```toml\n(.*?)```", page, re.S)
    path = tmp_path / "shown.toml"
    path.write_text(whole)
    assert list(read_search(path).space) == ["lr", "hidden", "dropout"]
    path.write_text(whole.partition("[set]")[0].replace("gcn", "gind") + part)
    assert list(read_search(path).space) == ["stop.tol", "solver"]
