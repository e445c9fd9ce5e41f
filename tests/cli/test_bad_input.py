"""What a user does wrong costs one line on stderr and exit code 2, and nothing that was there before."""

import errno
import os
import resource
import shutil
import signal
import sys
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import pytest
from cli_cases import TINY, Child, Outcome, command, snapshot, write_graph, write_molecules, write_nodes
from safetensors import safe_open
from safetensors.torch import save_file

# every case begins with a copy of these: graph, bare (without labels), wide (more features), strange (other labels),
# data (MUTAG), and the runs run and other (an mlp) on graph, open (stopped after one of two epochs), karate, molecules
Prepare = Callable[[Path], Any]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("prepared")
    write_graph(place / "graph")
    write_graph(place / "bare", labels=False)
    write_graph(place / "wide", width=5)
    write_graph(place / "strange")
    edit("strange/nodes.csv", ",a,", ",zebra,")(place)
    write_molecules(place / "data")
    here = Path.cwd()
    try:
        os.chdir(place)
        for line in (
            f"graph {TINY} --out run",
            f"graph {TINY} --out open --set epochs=1",
            f"graph {TINY} --out other --model mlp --set hidden=8",
            f"karate {TINY} --out karate",
            f"mutag --data data {TINY} --out molecules --set epochs=1",
        ):
            outcome = command(f"train {line}")
            assert outcome.code == 0, outcome
    finally:
        os.chdir(here)
    for name in ("weights.safetensors", "report.json"):
        (place / "open" / name).unlink()
    edit("open/config.toml", "epochs = 1", "epochs = 2")(place)
    return place


@pytest.fixture
def workplace(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    shutil.copytree(prepared, place)
    monkeypatch.chdir(place)
    monkeypatch.delenv("GIND_DATA", raising=False)
    monkeypatch.setenv("GIND_CACHE", str(tmp_path / "cache"))

    def no_web(*_: Any, **__: Any) -> None:
        raise urllib.error.URLError("no web in the tests")

    monkeypatch.setattr("urllib.request.urlopen", no_web)
    return place


def check_refusal(outcome: Outcome, words: str) -> None:
    """One line, exit code 2, and every one of the words (separated by |) in it."""
    assert outcome.error is None, repr(outcome.error)
    assert outcome.code == 2, outcome
    lines = outcome.stderr.splitlines()
    assert len(lines) == 1, outcome.stderr
    assert lines[0].startswith("gind: ")
    assert "Traceback" not in outcome.stdout
    for word in words.split("|"):
        assert word.strip() in lines[0], f"{word.strip()!r} is not in {lines[0]!r}"


# what a case does to its files first


def edit(path: str, old: str, new: str) -> Prepare:
    def change(place: Path) -> None:
        text = (place / path).read_text()
        assert old in text
        (place / path).write_text(text.replace(old, new))

    return change


def write(path: str, content: str | bytes) -> Prepare:
    def change(place: Path) -> None:
        (place / path).parent.mkdir(exist_ok=True)
        (place / path).write_bytes(content.encode() if isinstance(content, str) else content)

    return change


def delete(path: str) -> Prepare:
    return lambda place: (place / path).unlink()


def copy(source: str, target: str) -> Prepare:
    return lambda place: shutil.copy(place / source, place / target)


def cut(path: str, keep: float) -> Prepare:
    def change(place: Path) -> None:
        content = (place / path).read_bytes()
        (place / path).write_bytes(content[: int(keep * len(content))])

    return change


def nodes(*rows: str) -> Prepare:
    return lambda place: write_nodes(place / "graph", [row.split(",") for row in rows])


def without_tensor(path: str, name: str) -> Prepare:
    def change(place: Path) -> None:
        with safe_open(place / path, framework="pt") as file:
            header, keys = file.metadata(), file.keys()
            kept = {key: file.get_tensor(key) for key in keys if key != name}
        save_file(kept, place / path, metadata=header)

    return change


def other_header(path: str, header: dict[str, str]) -> Prepare:
    def change(place: Path) -> None:
        with safe_open(place / path, framework="pt") as file:
            keys = file.keys()
            tensors = {key: file.get_tensor(key) for key in keys}
        save_file(tensors, place / path, metadata=header)

    return change


def mines(place: Path) -> None:
    """A tiny set under the name of minesweeper, whose metric is ROC AUC; all nodes of the validation part are alike."""
    raw = place / "data" / "minesweeper" / "raw"
    raw.mkdir(parents=True)
    part = np.arange(30) % 3
    masks: Any = {f"{name}_masks": np.tile(part == k, (10, 1)) for k, name in enumerate(("train", "val", "test"))}
    np.savez(
        raw / "minesweeper.npz",
        node_features=np.random.default_rng(0).normal(size=(30, 7)).astype(np.float32),
        node_labels=np.where(part == 1, 0, np.arange(30) % 2),
        edges=np.stack([np.arange(30), (np.arange(30) + 1) % 30], axis=1),
        **masks,
    )


NODES = ("id,label,f", *(f"n{i},{'ab'[i % 2]},{i}" for i in range(30)))
SPLIT = ("id,label,f,split", *(f"n{i},{'ab'[i % 2]},{i},{'train' if i else 'test'}" for i in range(30)))

FILES: list[tuple[str, Prepare | None, str]] = [
    ("graph", nodes(*[row.replace("id,", "name,") for row in NODES]), "nodes.csv | expected a column 'id' | 'name'"),
    ("graph", edit("graph/edges.csv", "source,target", "a,b"), "edges.csv | source,target | 'a', 'b'"),
    ("graph", edit("graph/edges.csv", "source,target", "source,target,colour"), "edges.csv | 'colour'"),
    ("graph", delete("graph/nodes.csv"), "graph | expected one of nodes.csv"),
    ("graph", delete("graph/edges.csv"), "graph | expected one of edges.csv"),
    ("graph", edit("graph/nodes.csv", "n1,", "n0,"), "nodes.csv, line 3 | 'id' | 'n0' is there twice | line 2"),
    ("graph", edit("graph/edges.csv", "n3,n4\n", "n3,m4\n"), "edges.csv, line | there is no node 'm4'"),
    ("graph", nodes(*NODES[:-1], "n29,b,nan"), "nodes.csv, line 31 | 'f' | finite | nan"),
    ("graph", nodes(*NODES[:-1], "n29,b,1e300"), "nodes.csv, line 31 | 'f' | float32"),
    ("graph", nodes(*NODES[:-1], "n29,b,tall"), "nodes.csv, line 31 | 'f' | expected a number | 'tall'"),
    ("graph", nodes(*NODES[:-1], "n29,b,"), "nodes.csv, line 31 | 'f' | empty"),
    ("graph", nodes(*NODES[:-1], "n29,b"), "nodes.csv, line 31 | 2 cells | 3"),
    ("graph", nodes(*[row.replace(",b,", ",a,") for row in NODES]), "nodes.csv | 'label' | at least two classes"),
    ("graph", nodes(*[row.replace("label", "kind") for row in NODES]), "nodes.csv | 'label'"),
    ("graph --set label=kind", None, "nodes.csv | 'kind'"),
    ("graph", nodes(*SPLIT), "nodes.csv | 'split' | no node is in 'val'"),
    ("graph", nodes(*SPLIT[:-1], "n29,b,1,tset"), "nodes.csv, line 31 | 'split' | train, val, test | 'tset'"),
    ("graph", nodes(*SPLIT[:-1], "n29,,1,val"), "nodes.csv, line 31 | 'split' | no label"),
    ("graph", nodes(*[row.rpartition(",")[0] for row in NODES]), "nodes.csv | no features"),
    ("graph", nodes(NODES[0]), "nodes.csv | no nodes"),
    ("graph", write("graph/nodes.csv", ""), "nodes.csv | header"),
    ("graph", write("graph/nodes.csv", b"id,label,f\n\xff\xfe,a,1\n"), "nodes.csv, line 2 | UTF-8"),
    ("graph", write("graph/edges.csv", "source,target\n"), "edges.csv | no edges"),
    ("graph", write("graph/edges.csv", "source,target,weight\nn0,n1,-1\n"), "edges.csv, line 2 | 'weight' | negative"),
    ("./few", lambda place: write_graph(place / "few", nodes=2), "nodes.csv | 2 labelled nodes are too few"),
    ("./nowhere", None, "nowhere | no such file"),
    ("graph/nodes.csv", None, "graph/nodes.csv | expected a GraphML file, or the directory"),
    ("g.graphml", write("g.graphml", "<graphml><graph"), "g.graphml, line 1 | XML"),
    ("graph --set neighbors=3", None, "neighbors | own files"),
    ("graph --set splits=kfold", None, "splits | own files"),
    ("graph --set fractions=[0.9,0.1,0.0]", None, "'test' is empty"),
    ("wine --set fractions=[0.9,0.0,0.1]", None, "val | wine is empty"),
    ("wine --set fractions=[0.5,0.5]", None, "fractions | a list of 3"),
    ("wine --set fractions=[0.5,0.6,0.7]", None, "1.8 | more than 1"),
    ("wine --set fractions=[0.0,0.5,0.5]", None, "train > 0"),
    ("wine --set fractions=half", None, "fractions | 'half'"),
    ("wine --split 10", None, "wine | splits 0 to 9 | 10"),
    ("wine --set splits=published", None, "wine | no published splits"),
    ("wine --set splits=kfold --set folds=1", None, "`folds` | between 2 and 178 | 1"),
    ("wine --set neighbors=0", None, "`neighbors` | 0"),
    ("wine --set length=4", None, "wine | 'length'"),
    ("chains --set classes=1", None, "`classes` | 1"),
    ("chains --set length=0", None, "`length` | 0"),
    ("mutag --data nowhere", None, "data directory | nowhere | --data"),
    ("mutag --data graph", None, "mutag | MUTAG/raw/MUTAG_A.txt | not under graph | no web in the tests | --data DIR"),
    ("mutag", None, "mutag | --data DIR | no web in the tests"),
    ("mutag --data data", cut("data/MUTAG/raw/MUTAG_graph_indicator.txt", 0.5), "mutag"),
    ("mutag --data data", write("data/MUTAG/raw/MUTAG_A.txt", "one, two\n"), "mutag"),
]

KEYS: list[tuple[str, Prepare | None, str]] = [
    ("", None, "No dataset is named"),
    ("karat", None, "'karat' | Did you mean 'karate'"),
    ("qqqqqq", None, "no dataset 'qqqqqq' | karate"),
    ("graph --model gindd", None, "no model 'gindd' | Did you mean 'gind'"),
    ("graph --set model=gindd", None, "no model 'gindd'"),
    ("graph --set model.name=3", None, "model.name | a text | 3"),
    ("graph --beside gccn", None, "no model 'gccn' | Did you mean 'gcn'"),
    ("graph --set hiden=8", None, "no key 'hiden' | Did you mean 'hidden'"),
    ("graph --set train.lrr=1", None, "no key 'lrr' in [train] | Did you mean 'lr'"),
    ("graph --set model.lr=0.1", None, "no key 'lr' in [model]"),
    ("graph --set train=5", None, "'train'"),
    ("--set dataset=5", None, "No dataset is named"),
    ("graph --set split=a", None, "split must be a whole number >= 0 | 'a'"),
    ("graph --set split=true", None, "split must be a whole number >= 0 | True"),
    ("graph --set hidden", None, "Expected key=value | 'hidden'"),
    ("graph --set =3", None, "Expected key=value | '=3'"),
    ("graph --set stop..tol=3", None, "Expected key=value | 'stop..tol=3'"),
    ("graph --set hidden=abc", None, "hidden must be a whole number | 'abc'"),
    ("graph --set hidden=1.5", None, "hidden must be a whole number | 1.5"),
    ("graph --set hidden=true", None, "hidden must be a whole number | True"),
    ("graph --set hidden=", None, "hidden must be a whole number | ''"),
    ("graph --set hidden=[4", None, "hidden must be a whole number | '[4'"),
    ("graph --set hidden=0", None, "hidden | >= 1 | 0"),
    ("graph --set hidden.size=3", None, "hidden must be a whole number"),
    ("graph --set hidden=10000000", None, "hidden | 10000000"),
    ("graph --set layers=0", None, "layers | at least 1 | 0"),
    ("graph --model mlp --set layers=-1", None, "layers | at least 1 | -1"),
    ("graph --model mlp --set hidden=-4", None, "hidden | -4"),
    ("graph --model mlp --set solver=anderson", None, "no key 'solver'"),
    ("graph --set epochs=-1", None, "epochs | >= 1 | -1"),
    ("graph --set epochs=0", None, "epochs | >= 1 | 0"),
    ("graph --set patience=-1", None, "patience | >= 0 | -1"),
    ("graph --set lr=nan", None, "lr must be a number | nan"),
    ("graph --set lr=inf", None, "lr | finite | inf"),
    ("graph --set lr=-1", None, "lr | >= 0 | -1"),
    ("graph --set lr=fast", None, "lr must be a number | 'fast'"),
    ("graph --set clip=0", None, "clip | positive | 0"),
    ("graph --set clip=big", None, "clip must be a number | 'big' | (\"none\" for none)"),
    ("graph --set optimizer=sgd", None, "optimizer must be one of adam, adamw | 'sgd'"),
    ("graph --set eval_every=0", None, "eval_every | >= 1"),
    ("graph --set batch-size=0", None, "batch_size | >= 1"),
    ("graph --set warm_start=1", None, "warm_start must be true or false | 1"),
    ("graph --set dropout=1.5", None, "dropout | [0, 1) | 1.5"),
    ("graph --set diffusion_dropout=1", None, "dropout | 1"),
    ("graph --model mlp --set dropout=1.5", None, "dropout | [0, 1) | 1.5"),
    ("graph --model gcn --set dropout=-1", None, "dropout | [0, 1) | -1"),
    ("graph --set head=cnn", None, "head must be one of linear, mlp | 'cnn'"),
    ("graph --set features=scaled", None, "features must be one of raw, row, standard | 'scaled'"),
    ("graph --set activation=relu", None, "activation must be one of tanh, identity | 'relu'"),
    ("graph --set alpha=-1", None, "alpha | -1"),
    ("graph --set flux_channels=0", None, "flux_channels | at least 1 | 0"),
    ("graph --set solver=andersen", None, "solver must be one of | anderson | 'andersen'"),
    ("graph --set solver=anderson --set solver.memry=3", None, "no key solver.memry | Did you mean 'memory'"),
    ("graph --set solver=anderson --set solver.memory=0", None, "solver | 0"),
    ("graph --set solver.memory=3", None, "solver must be one of | no kind is given"),
    ("graph --set solver=5", None, "solver must be a kind or a table | 5"),
    ("graph --set solver=nesterov --set edge_norm=live", None, "Nesterov needs an energy | Anderson()"),
    ("graph --set edge_norm=froze", None, "edge_norm must be one of frozen, live | 'froze'"),
    ("graph --set regularizer=laplacian --set regularizer.eta=-1", None, "regularizer | -1"),
    ("graph --set scaling=rows", None, "scaling must be one of | row | 'rows'"),
    ("graph --set adjoint=phantom --set adjoint.steps=0", None, "adjoint | steps | 0"),
    ("graph --set stop.tol=-1", None, "stop | tol | -1"),
    ("graph --set stop.max_steps=-1", None, "stop | max_steps | -1"),
    ("graph --set stop.tolerance=1", None, "no key stop.tolerance | Did you mean"),
    ("graph --set schedule=cosin", None, "schedule must be one of | cosine | 'cosin'"),
    ("graph --set schedule=step --set schedule.decay=2", None, "schedule | decay | 2"),
    ("graph --set schedule=cosine --set schedule.warmup=-1", None, "schedule | warmup | -1"),
    ("graph --seed 99999999999999999999999", None, "seed | 99999999999999999999999"),
    ("graph --config missing.toml", None, "no file missing.toml"),
    ("graph --config graph", None, "graph | cannot be read"),
    ("--config c.toml", write("c.toml", "dataset = karate"), "c.toml is not valid TOML | line 1"),
    ("--config c.toml", write("c.toml", b"\xff\xfe"), "c.toml | cannot be read"),
    ("--config c.toml", write("c.toml", "dataset = 'graph'\n[training]\nlr = 1"), "no key 'training' | 'train'"),
    ("--config c.toml", write("c.toml", "dataset = 'graph'\n[train]\nlearning = 1"), "no key 'learning' in [train]"),
    ("--config c.toml", write("c.toml", "dataset = 'graph'\n[model]\nlayers = 'x'"), "layers | whole number | 'x'"),
    ("--config c.toml", write("c.toml", "dataset = 'graph'\nseed = -1"), "seed must be a whole number >= 0 | -1"),
    ("--config c.toml", write("c.toml", "dataset = ['graph']"), "No dataset is named"),
    ("--config c.toml", write("c.toml", "dataset = 'graph'\nmodel = 3"), "model | a text | 3"),
    ("graph --model mlp --set warm_start=true", None, "warm_start | MLP"),
    ("mutag --data data --set warm_start=true", None, "warm_start | one graph"),
    ("mutag --data data --model gcn", None, "gcn is for node and multilabel | mutag is graph"),
    ("mutag --data data --set attributes=true", None, "mutag | 'attributes'"),
]

CHECKPOINT, WEIGHTS, CONFIG = "open/checkpoint.safetensors", "run/weights.safetensors", "run/config.toml"
GO_ON = f"train graph {TINY} --out open --resume"

RUNS: list[tuple[str, Prepare | None, str]] = [
    (f"train graph {TINY} --out run --resume --overwrite", None, "--resume | --overwrite"),
    (f"train graph {TINY} --out run", None, "run holds a run already | --resume | --out"),
    (f"train graph {TINY} --out open", None, "open holds a run already | --resume | --out"),
    (f"train graph {TINY} --out graph/nodes.csv", None, "graph/nodes.csv | --out"),
    (f"train graph {TINY} --out graph/nodes.csv/run", None, "graph/nodes.csv | --out"),
    (f"train graph {TINY} --out /proc/nothing", None, "/proc/nothing | --out"),
    (f"train graph {TINY} --out run --overwrite --set warm_start=true --model mlp", None, "warm_start | MLP"),
    (f"train graph {TINY} --out foreign", write("foreign/report.json", "{}"), "foreign | report.json | --out"),
    (f"train graph {TINY} --out foreign", write("foreign/metrics.jsonl", "{}"), "foreign | metrics.jsonl | --out"),
    (f"{GO_ON} --set hidden=8", None, "open | other options | hidden was 4, is 8"),
    (f"{GO_ON} --set lr=0.5", None, "open | other options | lr was 0.01, is 0.5"),
    (f"{GO_ON} --set solver=picard", None, "open | other options | solver was 'none', is | picard"),
    (f"{GO_ON} --seed 1", None, "open | other options | seed was 0, is 1"),
    (f"{GO_ON} --split 1", None, "open | other options | split was 0, is 1"),
    (f"{GO_ON} --model mlp", None, "open | other options | gind | mlp"),
    ("train --threads 1 --out open --resume --seed 1", None, "open | other options | seed was 0, is 1"),
    ("train --threads 1 --out open --resume --split 1", None, "open | other options | split was 0, is 1"),
    ("train --threads 1 --out open --resume --model mlp", None, "open | other options | gind | mlp"),
    ("train --threads 1 --out open --resume --set hidden=8", None, "open | other options | hidden was 4, is 8"),
    ("train --threads 1 --out open --resume --set hiden=8", None, "no key 'hiden' | hidden"),
    (f"train karate {TINY} --out open --resume", None, "open | other options | dataset was 'graph', is 'karate'"),
    ("train --resume --out nowhere", None, "nowhere"),
    ("train --resume", None, "No dataset is named"),
    (GO_ON, write(CHECKPOINT, b""), f"{CHECKPOINT} | damaged | Delete it"),
    (GO_ON, write(CHECKPOINT, b"\xff" * 4000), f"{CHECKPOINT} | damaged | Delete it"),
    (GO_ON, cut(CHECKPOINT, 0.5), f"{CHECKPOINT} | damaged | Delete it"),
    (GO_ON, cut(CHECKPOINT, 0.999), f"{CHECKPOINT} | damaged | Delete it"),
    (GO_ON, copy(WEIGHTS, CHECKPOINT), f"{CHECKPOINT} | weights"),
    (GO_ON, copy("karate/checkpoint.safetensors", CHECKPOINT), f"{CHECKPOINT} | another training"),
    (GO_ON, copy("other/checkpoint.safetensors", CHECKPOINT), f"{CHECKPOINT} | another training | GIND | MLP"),
    (GO_ON, other_header(CHECKPOINT, {}), f"{CHECKPOINT} | is damaged"),
    (GO_ON, other_header(CHECKPOINT, {"gind": "[]"}), f"{CHECKPOINT} | is damaged"),
    (GO_ON, other_header(CHECKPOINT, {"gind": '{"format": 99, "kind": "checkpoint"}'}), f"{CHECKPOINT} | format"),
    (GO_ON, other_header(CHECKPOINT, {"gind": '{"format": 1, "kind": "checkpoint"}'}), f"{CHECKPOINT} | Delete it"),
    *((GO_ON, without_tensor(CHECKPOINT, name), f"{CHECKPOINT} | not complete | Delete it")
      for name in ("history", "random", "model.head.1.bias", "optimizer.0.exp_avg", "best.head.1.bias")),
    (GO_ON, edit("graph/edges.csv", "n3,n4\n", "n3,n9\n"), f"{CHECKPOINT} | data"),
    (GO_ON, edit("graph/nodes.csv", "n3,b,-", "n3,b,"), f"{CHECKPOINT} | data"),
    (GO_ON, edit("graph/nodes.csv", "n3,b,", "n3,a,"), f"{CHECKPOINT} | data"),
    (GO_ON, write("open/config.toml", "dataset = 'graph"), "open/config.toml is not valid TOML"),
    (GO_ON, write("open/config.toml", ""), "open/config.toml | [trained]"),
    ("evaluate nowhere", None, "nowhere is not the directory of a run"),
    ("evaluate graph", None, "graph is not the directory of a run"),
    ("evaluate graph/nodes.csv", None, "graph/nodes.csv is not the directory of a run"),
    ("evaluate open", None, "open | weights.safetensors | --resume"),
    ("predict open", None, "open | weights.safetensors | --resume"),
    ("certify open", None, "open | weights.safetensors | --resume"),
    ("evaluate run", cut(WEIGHTS, 0.5), f"{WEIGHTS} | damaged"),
    ("evaluate run", write(WEIGHTS, b""), f"{WEIGHTS} | damaged"),
    ("evaluate run", copy(CHECKPOINT, WEIGHTS), f"{WEIGHTS} | checkpoint"),
    ("evaluate run", copy("other/weights.safetensors", WEIGHTS), f"{WEIGHTS} | mlp | gind"),
    ("evaluate run", copy("karate/weights.safetensors", WEIGHTS), f"{WEIGHTS} | does not fit"),
    ("evaluate run", without_tensor(WEIGHTS, "model.head.1.bias"), f"{WEIGHTS} | does not fit"),
    ("predict run", without_tensor(WEIGHTS, "features.scale"), f"{WEIGHTS}"),
    ("predict run", edit(CONFIG, "hidden = 4", "hidden = 6"), f"{WEIGHTS} | does not fit"),
    ("certify run", cut(CONFIG, 0.6), CONFIG),
    ("certify run", write(CONFIG, b"\xff\xfe"), CONFIG),
    ("certify run", edit(CONFIG, "hidden = 4", "hidden = 'x'"), "hidden | whole number"),
    ("certify run", edit(CONFIG, "features = 3", "features = 'x'"), f"{CONFIG} | [trained]"),
    ("certify run", edit(CONFIG, "[trained]", "[train.ed]"), CONFIG),
    ("predict run", edit(CONFIG, 'dataset = "graph"', 'dataset = "gone/graph"'), "gone/graph | no such file"),
    ("predict run", edit(CONFIG, 'task = "node"', 'task = "tree"'), "task | tree"),
    ("evaluate run wide", None, "wide | 'f3' | run"),
    ("predict run wide", None, "wide | 'f3' | run"),
    ("certify run wide", None, "wide | 'f3' | run"),
    ("predict karate graph", None, "number of features of graph is 3 | karate | 34"),
    ("predict run bare", edit("bare/nodes.csv", "f1", "height"), "bare | 'f1' | run"),
    ("predict run karate", None, "number of features of karate is 34 | run | 3"),
    ("evaluate run strange", None, "strange | 'zebra' | run was not trained on"),
    ("predict run mutag --data data", None, "task of mutag is graph | run | node"),
    ("predict molecules graph", None, "task of graph is node | molecules | graph"),
    ("certify molecules", None, "mutag | --data"),
    ("evaluate run bare", None, "bare | 'label'"),
    ("evaluate run nothing", None, "no dataset 'nothing'"),
    ("evaluate run --split 77", None, "graph has splits 0 to 9 | 77"),
    ("evaluate run --split -1", None, "split | -1"),
    ("predict run --out nowhere/p.csv", None, "nowhere"),
    ("predict run --out graph", None, "graph"),
    ("predict run --out graph/nodes.csv/p.csv", None, "graph/nodes.csv"),
    ("keys gindd", None, "no model 'gindd' | Did you mean 'gind'"),
    ("keys gcn --dataset coar", None, "no dataset 'coar' | cora"),
    ("datasets check karat", None, "no dataset 'karat' | karate"),
    ("datasets check cora", None, "--data DIR"),
]  # fmt: skip

CASES = [
    *(pytest.param(f"train {line} {TINY} --out new", *more, id=f"train {line}") for line, *more in FILES),
    # what a case sets goes over the tiny values
    *(pytest.param(f"train {TINY} --out new {line}", *more, id=f"train {line}") for line, *more in KEYS),
    *(pytest.param(line, *more, id=line.replace(f" {TINY}", "")) for line, *more in RUNS),
]


@pytest.mark.parametrize(("line", "prepare", "words"), CASES)
def test_refusal_is_one_line_and_loses_nothing(workplace: Path, line: str, prepare: Prepare | None, words: str) -> None:
    if prepare is not None:
        prepare(workplace)
    before = snapshot(workplace)
    outcome = command(line)
    check_refusal(outcome, words)
    assert snapshot(workplace) == before


@pytest.mark.parametrize(
    "line",
    [
        "--nonsense",
        "trian karate",
        "train karate --nonsense",
        "train karate --split -1",
        "train karate --seed -1",
        "train karate --seed x",
        "train karate --threads 0",
        "train karate --checkpoint-every 0",
        "train karate --set",
        "train karate wine",
        "evaluate",
        "predict",
        "certify",
        "evaluate run --split x",
        "datasets check",
        "datasets nonsense",
    ],
)
def test_usage_errors_have_code_2(workplace: Path, line: str) -> None:
    before = snapshot(workplace)
    outcome = command(line)
    assert outcome.code == 2
    assert outcome.error is None
    assert "Error" in outcome.stderr
    assert snapshot(workplace) == before


def test_tensorboard_that_is_not_installed(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    before = snapshot(workplace)
    check_refusal(command(f"train graph {TINY} --out new --tensorboard"), "pip install 'gind[track]'")
    assert snapshot(workplace) == before


def test_directory_in_use_by_another_process(workplace: Path) -> None:
    before = snapshot(workplace)
    with filelock.FileLock(workplace / "open" / ".lock"):
        check_refusal(command(GO_ON), "Another process is training in open | --out")
    assert snapshot(workplace) == before
    assert command(GO_ON).code == 0


@pytest.mark.parametrize(
    ("line", "prepare", "words"),
    [
        ("graph --set lr=1e30", None, "loss is nan | Lower `lr`"),
        ("graph --set throw=raise --set stop={tol=1e-9,max_steps=1}", None, "used up its steps | 1e-09 | max_steps"),
        ("minesweeper --data data", mines, "ROC AUC | both classes"),
    ],
)
def test_training_that_fails(workplace: Path, line: str, prepare: Prepare | None, words: str) -> None:
    if prepare is not None:
        prepare(workplace)
    before = snapshot(workplace)
    check_refusal(command(f"train {line} {TINY} --out new"), words)
    shutil.rmtree(workplace / "new")
    assert snapshot(workplace) == before


@pytest.mark.parametrize("line", ["evaluate vague", "predict vague", "certify vague"])
def test_a_solve_that_was_to_raise(workplace: Path, line: str) -> None:
    options = "--set throw=ignore --set stop.max_steps=1 --set stop.tol=1e-9"
    assert command(f"train graph {TINY} {options} --out vague").code == 0
    config = workplace / "vague" / "config.toml"
    config.write_text(config.read_text().replace('throw = "ignore"', 'throw = "raise"'))
    check_refusal(command(line), "used up its steps | 1e-09 | max_steps")


def test_refused_run_leaves_its_directory_free(workplace: Path) -> None:
    """Whoever mends the option can use the same command again."""
    assert command(f"train mutag --data data {TINY} --out new --set warm_start=true").code == 2
    assert command(f"train mutag --data data {TINY} --out new").code == 0


@pytest.mark.parametrize("name", ["config.toml", "checkpoint.safetensors", "weights.safetensors", "report.json"])
def test_disk_full(workplace: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up while one of the files is written: one line, and the file is not there in part."""
    real = os.fsync

    def full(handle: int) -> None:
        if f"/.{name}." in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    check_refusal(command(f"train graph {TINY} --out new"), "No space left on device")
    monkeypatch.undo()
    assert not (workplace / "new" / name).exists()
    assert not list((workplace / "new").glob(".*.part"))


@pytest.mark.parametrize("limit", [700, 4000], ids=["config.toml", "checkpoint.safetensors"])
def test_files_that_may_not_grow(workplace: Path, limit: int) -> None:
    """The system refuses to write more than `limit` bytes to a file, and later does not."""

    def refuse() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    line = f"train graph {TINY} --out new --checkpoint-every 1"
    child = Child(line, workplace / "log", refuse)
    code, text = child.wait(), child.text
    (workplace / "log").unlink()
    assert code == 2, text
    errors = [row for row in text.splitlines() if row.startswith("gind: ")]
    assert len(errors) == 1, text
    assert "File too large" in errors[0]
    assert "Traceback" not in text
    assert not list((workplace / "new").glob(".*.part"))
    assert command(f"{line} --resume").code == 0
    fresh = workplace / "fresh"
    assert command(f"train graph {TINY} --out fresh").code == 0
    assert (workplace / "new/weights.safetensors").read_bytes() == (fresh / "weights.safetensors").read_bytes()
