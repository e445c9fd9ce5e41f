"""Defaults of a model on a dataset, and those that begin with another's."""

from importlib import resources
from typing import Any

import pytest

from gind.experiments.models import MODELS, defaults
from gind.experiments.toml import parse_toml


def tables(model: str) -> dict[str, Any]:
    file = resources.files("gind.experiments").joinpath("defaults", f"{model}.toml")
    return parse_toml(file.read_text(encoding="utf-8"), file.name) if file.is_file() else {}


@pytest.mark.parametrize("model", MODELS)
def test_defaults_begin_with_all_then_another_dataset_then_its_own(model: str) -> None:
    written = tables(model)
    for dataset, own in written.items():
        expected: dict[str, Any] = {}
        chain = [dataset]
        while "like" in written[chain[-1]]:
            chain.append(written[chain[-1]]["like"])
            assert chain[-1] in written, f"{model}.toml: [{chain[-2]}] is like a dataset without a table"
            assert len(set(chain)) == len(chain), f"{model}.toml: {' is like '.join(chain)}"
        for name in ["all", *reversed(chain)]:
            expected |= {key: value for key, value in written.get(name, {}).items() if key != "like"}
        if dataset != "all":
            assert defaults(model, dataset) == expected
            assert set(own) - {"like"} <= set(expected)


def test_a_dataset_like_another_has_its_settings() -> None:
    assert defaults("gind", "squirrel") == defaults("gind", "chameleon")
    assert defaults("gind", "nci1") == defaults("gind", "mutag") | {"epochs": 60, "batch_size": 128}
    assert "like" not in defaults("gind", "nci1")


def test_a_dataset_without_a_table_has_those_of_all() -> None:
    assert defaults("gind", "nowhere") == tables("gind")["all"]
