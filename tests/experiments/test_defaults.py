"""Defaults of a model on a dataset, and those that begin with another's."""

from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from gind.experiments import make_spec
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


def test_graph_sets_have_one_setting_but_for_epochs_and_batches_and_remarks_say_which() -> None:
    sizes = {}
    for dataset in ("mutag", "ptc_mr", "cox2", "proteins", "nci1"):
        own, first = defaults("gind", dataset), defaults("gind", "mutag")
        assert {key for key in own | first if own.get(key) != first.get(key)} <= {"epochs", "batch_size"}
        train = make_spec({"dataset": dataset, "model": "gind"}).train
        sizes[dataset] = f"{train.epochs} epochs and batches of {train.batch_size}"
    assert len({sizes[dataset] for dataset in ("mutag", "ptc_mr", "cox2")}) == 1
    said = [sizes["mutag"], f"PROTEINS {sizes['proteins']}", f"NCI1 {sizes['nci1']}"]
    folder = Path(__file__).parents[2] / "experiments" / "remarks"
    for sheet, times in (("graphs", 2), ("baselines", 3)):
        text = " ".join((folder / f"{sheet}.toml").read_text(encoding="utf-8").replace("\\\n", "").split())
        remarks = [remark.split('"""')[0] for remark in text.split("ne setting for all graph sets")[1:]]
        assert len(remarks) == times
        assert all(remark.startswith(" but for epochs and batch size") for remark in remarks)
        assert all(words in remark for words in said for remark in remarks)
