"""The table: names are found however they are written, files and addresses are those of PyG, no torch is needed."""

import dataclasses
import pathlib
import subprocess
import sys
from typing import Any

import pytest
from torch_geometric import datasets
from torch_geometric.datasets import heterophilous_graph_dataset, linkx_dataset

import gind.datasets.entry as entries
from gind.datasets import DATASETS, DataError, find, on_disk
from gind.datasets.table import ALIASES, missing, nearest

NAMES = [
    "cora",
    "citeseer",
    "pubmed",
    "cornell",
    "cornell-pre2022",
    "texas",
    "wisconsin",
    "chameleon",
    "squirrel",
    "chameleon-filtered",
    "squirrel-filtered",
    "chameleon-filtered-directed",
    "squirrel-filtered-directed",
    "actor",
    "minesweeper",
    "tolokers",
    "computers",
    "photo",
    "cs",
    "physics",
    "reed98",
    "amherst41",
    "johnshopkins55",
    "cornell5",
    "roman-empire",
    "amazon-ratings",
    "questions",
    "ppi",
    "mutag",
    "ptc_mr",
    "ptc",
    "cox2",
    "proteins",
    "nci1",
    "chains",
    "digits",
    "wine",
    "breast-cancer",
    "karate",
]


def test_the_table_has_the_promised_names_and_no_other() -> None:
    assert set(DATASETS) == set(NAMES)
    assert all(entry.name == name for name, entry in DATASETS.items())


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Cora", "cora"),
        ("CORNELL_PRE2022", "cornell-pre2022"),
        ("film", "actor"),
        ("ptc-mr", "ptc_mr"),
        ("PTC_MR", "ptc_mr"),
        (" Roman_Empire ", "roman-empire"),
        ("Coauthor_CS", "cs"),
    ],
)
def test_case_dashes_and_aliases_do_not_matter(written: str, name: str) -> None:
    assert find(written) is DATASETS[name]


def test_an_alias_names_a_set_and_hides_none() -> None:
    assert set(ALIASES.values()) <= set(DATASETS)
    assert not set(ALIASES) & {name.replace("_", "-") for name in DATASETS}


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(DataError, match=r"no dataset 'Texsa'. Did you mean 'texas'\?$"):
        find("Texsa")
    assert nearest("zzz", []) == "There are: none."


def test_metrics_and_tasks_are_those_of_the_literature() -> None:
    auc = {name for name, entry in DATASETS.items() if entry.metric == "roc_auc"}
    assert auc == {"minesweeper", "tolokers", "questions"}
    assert [name for name, entry in DATASETS.items() if entry.task == "multilabel"] == ["ppi"]
    assert DATASETS["ppi"].metric == "micro_f1"
    graphs = {name for name, entry in DATASETS.items() if entry.task == "graph"}
    assert graphs == {"mutag", "ptc_mr", "ptc", "cox2", "proteins", "nci1"}
    assert all((entry.splits == "kfold") == (entry.task == "graph") for entry in DATASETS.values())


def test_entries_cannot_be_changed() -> None:
    table: Any = DATASETS
    with pytest.raises(dataclasses.FrozenInstanceError):
        table["cora"].name = "other"
    with pytest.raises(TypeError):
        table["chains"].options["length"] = 3


def test_files_are_relative_and_named_once() -> None:
    for entry in DATASETS.values():
        paths = [file.path for file in entry.files]
        assert len(paths) == len(set(paths))
        assert not any(pathlib.PurePosixPath(path).is_absolute() or ".." in path for path in paths)


def test_addresses_are_those_of_pyg() -> None:
    assert datasets.Planetoid.url == entries.PLANETOID
    assert entries.GEOM_GCN == datasets.Planetoid.geom_gcn_url == datasets.WebKB.url == datasets.Actor.url
    assert datasets.WikipediaNetwork.processed_url == entries.GEOM_GCN_OLD
    assert heterophilous_graph_dataset.HeterophilousGraphDataset.url == entries.PLATONOV
    assert f"{entries.BENCHMARK}/" == datasets.Amazon.url == datasets.Coauthor.url
    assert datasets.TUDataset.url == entries.TU
    assert datasets.PPI.url == entries.PPI
    for name in ("reed98", "amherst41", "johnshopkins55", "cornell5"):
        address = linkx_dataset.LINKXDataset.datasets[name]["data.mat"]
        assert [file.url for file in DATASETS[name].files] == [address]


def test_missing_files_are_named_and_sets_without_files_are_always_there(tmp_path: pathlib.Path) -> None:
    expected = "minesweeper/raw/minesweeper.npz"
    assert missing(DATASETS["minesweeper"], tmp_path) == (expected,)
    assert not on_disk("minesweeper", tmp_path)
    (tmp_path / expected).parent.mkdir(parents=True)
    (tmp_path / expected).touch()
    assert on_disk("Minesweeper", tmp_path)
    assert on_disk("digits", tmp_path / "absent")


def test_the_table_needs_no_torch() -> None:
    # the package imports torch today: so the modules are run under bare packages, as a lazy one would
    program = """
import importlib, sys, types
for name in ("gind", "gind.datasets"):
    package = types.ModuleType(name)
    package.__path__ = [sys.argv[1] if name == "gind" else sys.argv[1] + "/datasets"]
    sys.modules[name] = package
table = importlib.import_module("gind.datasets.table")
check = importlib.import_module("gind.datasets.check")
assert not check.on_disk("cora", "/nowhere") and table.find("film").name == "actor"
assert "torch" not in sys.modules and "numpy" not in sys.modules
"""
    source = pathlib.Path(entries.__file__).parents[1]
    subprocess.run([sys.executable, "-c", program, str(source)], check=True)
