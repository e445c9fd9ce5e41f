"""`gind keys` shows what runs, and a key that changes nothing is not set in silence."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_cases import TINY, command, write_graph

from gind.experiments import MODELS, make_spec
from gind.experiments.models import datasets_with_defaults
from gind.experiments.setup import sample_model
from gind.experiments.spec import default_values
from gind.train import FitOptions, make_optimizer, takes_start, unread_options

OWN = "./graph"  # a path has no defaults of its own
PAIRS = [(model, dataset) for model in MODELS for dataset in (None, "karate", *datasets_with_defaults(model))]


def running(model: str, dataset: str | None) -> dict[str, dict[str, Any]]:
    """The sections of the config of a run where nothing is set."""
    table = make_spec({"dataset": dataset or OWN, "model": {"name": model}}).table()
    table["model"].pop("name")
    return {section: table[section] for section in ("data", "model", "train")}


def shown(line: str) -> dict[str, str]:
    """Key → default as printed, without the blanks that lines are broken at."""
    found: dict[str, str] = {}
    name = ""
    for row in command(line).stdout.splitlines():
        if row.startswith("│"):
            key, default, _ = (cell.strip() for cell in row.strip("│").split("│"))
            name = key or name
            found[name] = found.get(name, "") + default.replace(" ", "")
    return found


@pytest.mark.parametrize(("model", "dataset"), PAIRS)
def test_defaults_are_those_of_a_run(model: str, dataset: str | None) -> None:
    assert default_values(model, dataset) == running(model, dataset)


@pytest.mark.parametrize(
    ("line", "model", "dataset"),
    [
        ("keys", "gind", None),
        ("keys gcn", "gcn", None),
        ("keys gcn --dataset cora", "gcn", "cora"),
        ("keys gind --dataset chameleon", "gind", "chameleon"),
        ("keys gcn --dataset ./graph", "gcn", OWN),
    ],
)
def test_keys_print_what_runs(line: str, model: str, dataset: str | None) -> None:
    sections = running(model, dataset)
    assert shown(line) == {
        name: json.dumps(value).replace(" ", "") for values in sections.values() for name, value in values.items()
    }


def test_keys_name_the_datasets_with_other_defaults() -> None:
    printed = " ".join(command("keys gcn").stdout.split())
    assert "Other defaults on cora, citeseer, pubmed," in printed
    assert "gind keys gcn --dataset NAME" in printed
    assert "Other defaults" not in command("keys gcn --dataset cora").stdout


@pytest.mark.parametrize(("model", "dataset"), PAIRS)
def test_rates_of_implicit_layers_are_read_where_the_optimizer_has_their_group(model: str, dataset: str | None) -> None:
    before = torch.random.get_rng_state()
    built = sample_model(model, running(model, dataset)["model"])
    assert torch.equal(torch.random.get_rng_state(), before)
    rates = {group["lr"] for group in make_optimizer(built, FitOptions(lr=0.25, implicit_lr=0.5)).param_groups}
    assert (0.5 in rates) == (not unread_options(built))
    assert (not unread_options(built)) == model.startswith("gind")
    assert takes_start(built) == model.startswith("gind")


def test_convolutions_of_gcnii_in_a_group_of_their_own_read_them() -> None:
    assert unread_options(sample_model("gcnii", {"layers": 2, "own_group": True})) == ()
    # what an earlier version wrote, or another one will, is no hindrance
    assert unread_options(sample_model("gcnii", {"layers": "two", "name": "gcnii", "new": 1, "own_group": True})) == ()


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("--model ignn --set implicit_lr=7", "implicit_lr"),
        ("--model mlp --set implicit_lr=7 --set implicit_weight_decay=1", "implicit_lr, implicit_weight_decay"),
        ("--model gcnii --set layers=2 --set implicit_lr=7", "implicit_lr"),
        ("--model gcnii --set layers=2 --set own_group=true --set implicit_lr=0.1", ""),
        ("--model ignn", ""),
        ("--set implicit_lr=0.1", ""),
    ],
)
def test_a_rate_without_parameters_is_told(line: str, names: str, tmp_path: Path) -> None:
    outcome = command(f"train {write_graph(tmp_path / 'graph')} {TINY} {line} --out {tmp_path / 'run'}")
    assert outcome.code == 0, outcome
    told = [text for text in outcome.stdout.splitlines() if "without effect" in text]
    assert [text.partition(":")[0] for text in told] == ([names] if names else [])
