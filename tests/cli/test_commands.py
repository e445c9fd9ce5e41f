"""Every command from end to end, on data that comes with the package and on a graph of one's own."""

import csv
import inspect
import json
import os
import shlex
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_cases import TINY, Child, command, snapshot, write_graph, write_molecules, write_nodes

import gind
from gind.datasets import DATASETS, load
from gind.datasets.files import read_graph
from gind.diffusion import Diffusion
from gind.equilibrium import ConvergenceWarning
from gind.experiments import MODELS, load_artefact, make_spec
from gind.experiments.artefact import read_config
from gind.experiments.keys import parse, plain
from gind.experiments.models import KINDS
from gind.experiments.spec import keys_by_section
from gind.models import GIND
from gind.train import EpochRecord, MetricsFile

RUNS = {
    "karate": f"karate {TINY}",
    "wine": f"wine {TINY} --split 3 --seed 5 --set layers=2 --set head=mlp --set solver=anderson",
    "own": f"graph {TINY} --set epochs=8 --set stop.tol=1e-6",
    "molecules": f"mutag --data data {TINY} --set pooling=mean",
    "mlp": f"graph {TINY} --model mlp",
    "gcn": f"graph {TINY} --model gcn",
    "live": f"graph {TINY} --set edge_norm=live --set stop.max_steps=20",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A working directory with graphs and trained runs; tests must not change them."""
    directory, before = tmp_path_factory.mktemp("commands"), Path.cwd()
    write_graph(directory / "graph")
    write_graph(directory / "bare", nodes=12, labels=False, seed=1)
    write_molecules(directory / "data")
    os.chdir(directory)
    for name, line in RUNS.items():
        outcome = command(f"train {line} --out {name}")
        assert outcome.code == 0, outcome
        assert f"gind predict {name}" in outcome.stdout
    yield directory
    os.chdir(before)


def report(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "report.json").read_text())
    return content


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_help_names_every_command() -> None:
    outcome = command("--help")
    assert outcome.code == 0
    for name in ("train", "evaluate", "predict", "certify", "keys", "doctor", "datasets"):
        assert name in outcome.stdout
        assert command(f"{name} --help").code == 0


def test_no_command_shows_the_help() -> None:
    assert "Usage: gind" in "".join(vars(command("")).get(name, "") for name in ("stdout", "stderr"))


def test_version() -> None:
    outcome = command("--version")
    assert outcome.code == 0
    assert outcome.stdout == f"gind {gind.__version__}\n"


@pytest.mark.parametrize("arguments", ["--help", "--version", "train --help", "datasets --help"])
def test_torch_is_not_imported_for(arguments: str) -> None:
    script = (
        "import sys, gind.cli\n"
        f"try: gind.cli.app({arguments.split()!r}, prog_name='gind')\n"
        "except SystemExit: pass\n"
        "slow = [name for name in ('torch', 'numba', 'scipy', 'sklearn', 'matplotlib') if name in sys.modules]\n"
        "sys.exit(f'imported: {slow}' if slow else 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", RUNS)
def test_report_says_all(place: Path, name: str) -> None:
    content = report(place / name)
    expected = {"config", "split", "seed", "test", "validation", "certificate", "versions", "seconds", "training"}
    assert expected <= content.keys()
    for part in ("test", "validation"):
        assert 0 <= content[part]["accuracy"] <= 1
        assert content[part]["loss"] > 0
    assert content["seconds"] > 0
    assert content["versions"]["gind"] == gind.__version__
    assert content["versions"]["torch"] == torch.__version__
    spec, trained = read_config(place / name)
    assert content["config"] == spec.table()
    assert (content["split"], content["seed"]) == (spec.split, spec.seed)
    assert trained["metric"] == "accuracy"
    certificate = content["certificate"]
    if name in ("mlp", "gcn"):
        assert certificate is None
    elif name == "live":
        assert certificate["bound"] is None
        assert not certificate["proven"]
    else:
        assert certificate["reached"]
        assert 0 <= certificate["residual"] <= certificate["tolerance"]
        assert 0 <= certificate["bound"] < 1


@pytest.mark.parametrize("name", RUNS)
def test_evaluate_agrees_with_the_report(place: Path, name: str) -> None:
    before = snapshot(place)
    data = "--data data" if name == "molecules" else ""
    outcome = command(f"evaluate {name} {data} --json --threads 1")
    assert outcome.code == 0
    result = json.loads(outcome.stdout)
    content = report(place / name)
    assert result["split"] == content["split"]
    assert result["test"] == content["test"]
    assert result["val"] == content["validation"]
    assert result["train"].keys() == {"accuracy", "loss"}
    table = command(f"evaluate {name} {data} --threads 1")
    assert table.code == 0
    assert f"{content['test']['accuracy']:.4f}" in table.stdout
    assert snapshot(place) == before


def test_evaluate_on_another_split(place: Path) -> None:
    other = json.loads(command("evaluate own --split 1 --json").stdout)
    assert other["split"] == 1
    assert other["test"] != report(place / "own")["test"]


@pytest.mark.parametrize("name", RUNS)
def test_predict_writes_what_the_model_says(place: Path, name: str, tmp_path: Path) -> None:
    before = snapshot(place)
    path = tmp_path / "p.csv"
    data = "--data data" if name == "molecules" else ""
    outcome = command(f"predict {name} {data} --out {path} --threads 1")
    assert outcome.code == 0, outcome
    assert snapshot(place) == before
    table = rows(path)
    content = report(place / name)
    assert f"{len(table)} predictions: {path}" in outcome.stdout

    artefact = load_artefact(place / name)
    classes = list(artefact.trained["classes"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # "live" has none to reach
        scores = scores_by_hand(artefact.model, name)
    probabilities = scores.softmax(dim=1)
    assert len(table) == len(probabilities)
    columns = ["id", "prediction", *(f"p({label})" for label in classes)]
    certified = content["certificate"] is not None
    # of one layer with an energy and a linear head it is known which labels are those of the exact equilibrium
    proven = name in ("karate", "own")
    assert list(table[0]) == [*columns, *["residual", "bound"] * certified, *["proven"] * proven]
    for row, expected in zip(table, probabilities, strict=True):
        values = torch.tensor([float(row[f"p({label})"]) for label in classes])
        assert abs(float(values.sum()) - 1) < 1e-5
        torch.testing.assert_close(values, expected, atol=2e-6, rtol=0)
        assert row["prediction"] == classes[int(expected.argmax())]
        if certified and name != "live":
            assert float(row["residual"]) <= content["certificate"]["tolerance"]
            assert float(row["bound"]) < 1
    names = [f"n{i}" for i in range(30)] if "graph" in RUNS[name] else [str(i) for i in range(len(table))]
    assert [row["id"] for row in table] == names


def scores_by_hand(model: torch.nn.Module, name: str) -> torch.Tensor:
    """The scores of a run's model, from the data without our help: own graphs are standardized."""
    assert not model.training
    with torch.inference_mode():
        if name == "molecules":
            from torch_geometric.data import Batch

            batch = Batch.from_data_list(list(load("mutag", "data").graphs))
            scores: torch.Tensor = model(batch.x, batch.edge_index, batch=batch.batch)
            return scores
        own = name not in ("karate", "wine")
        (data,) = (read_graph("graph") if own else load(name)).graphs
        x = data.x
        if own:
            x = ((x.double() - x.double().mean(0)) / x.double().std(0, unbiased=False)).float()
        scores = model(x, data.edge_index)
        return scores


def test_predict_of_a_run_lies_in_the_run(place: Path) -> None:
    assert command("predict mlp --threads 1").code == 0
    assert len(rows(place / "mlp" / "predictions.csv")) == 30
    (place / "mlp" / "predictions.csv").unlink()


def test_proven_labels_are_those_of_an_exact_solve(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    assert command(f"predict own --out {path}").code == 0
    model = load_artefact("own").model.double()
    assert isinstance(model, GIND)
    for layer in model.layers:
        assert isinstance(layer, Diffusion)
        layer.stop = gind.Stop(1e-13, 5000)
    (data,) = read_graph("graph").graphs
    x = data.x.double()
    with torch.inference_mode():
        exact = model((x - x.mean(0)) / x.std(0, unbiased=False), data.edge_index).argmax(1)
    table = rows(path)
    assert any(row["proven"] == "yes" for row in table)
    for row, label in zip(table, exact.tolist(), strict=True):
        assert row["proven"] == "no" or row["prediction"] == "ab"[label]


def test_columns_are_found_by_their_names(place: Path, tmp_path: Path) -> None:
    """Other data may have its columns in another order."""
    with (place / "bare" / "nodes.csv").open(newline="") as file:
        table = [[row[k] for k in (3, 0, 2, 1)] for row in csv.reader(file)]
    write_nodes(tmp_path / "turned", table)
    (tmp_path / "turned" / "edges.csv").write_bytes((place / "bare" / "edges.csv").read_bytes())
    for data, name in (("bare", "p"), (tmp_path / "turned", "q")):
        assert command(f"predict own {data} --out {tmp_path / name}").code == 0
    assert (tmp_path / "p").read_bytes() == (tmp_path / "q").read_bytes()


def test_other_data_without_labels(place: Path, tmp_path: Path) -> None:
    """Predict and certify a graph that was never seen; its features are scaled as those of the training were."""
    path = tmp_path / "p.csv"
    assert command(f"predict own bare --out {path} --threads 1").code == 0
    table = rows(path)
    assert [row["id"] for row in table] == [f"n{i}" for i in range(12)]
    (trained,) = read_graph("graph").graphs
    (other,) = read_graph("bare", require_labels=False).graphs
    mean, deviation = trained.x.double().mean(0), trained.x.double().std(0, unbiased=False)
    with torch.inference_mode():
        scores = load_artefact("own").model(((other.x.double() - mean) / deviation).float(), other.edge_index)
    values = torch.tensor([[float(row["p(a)"]), float(row["p(b)"])] for row in table])
    torch.testing.assert_close(values, scores.softmax(1), atol=5e-6, rtol=0)
    certified = command("certify own bare --json")
    assert certified.code == 0
    assert json.loads(certified.stdout)["reached"]


@pytest.mark.parametrize("name", RUNS)
def test_certify(place: Path, name: str) -> None:
    data = "--data data" if name == "molecules" else ""
    outcome = command(f"certify {name} {data} --json --threads 1")
    content = report(place / name)["certificate"]
    if content is None:
        assert outcome.code == 0
        assert json.loads(outcome.stdout) is None
        assert "no equilibrium" in command(f"certify {name}").stdout
        return
    table = json.loads(outcome.stdout)
    assert table.keys() == content.keys()
    assert outcome.code == (0 if table["reached"] else 1)
    if name != "molecules":  # there the report is of the test part, and this is of everything
        assert table == content
    text = command(f"certify {name} {data} --threads 1")
    assert text.code == outcome.code
    assert f"{table['residual']:.3e}" in text.stdout


def test_certify_says_when_a_tolerance_is_not_reached(place: Path) -> None:
    line = f"train graph {TINY} --out vague --set stop.max_steps=2 --set stop.tol=1e-8 --set throw=ignore"
    assert command(line).code == 0
    outcome = command("certify vague --json")
    assert outcome.code == 1
    assert not json.loads(outcome.stdout)["reached"]


@pytest.mark.parametrize("name", RUNS)
def test_config_of_a_run_makes_the_same_run(place: Path, name: str, tmp_path: Path) -> None:
    data = "--data data" if name == "molecules" else ""
    line = f"train --config {name}/config.toml --out {tmp_path / 'again'} {data} --threads 1 --quiet"
    assert command(line).code == 0
    for file in ("weights.safetensors", "config.toml"):
        assert (tmp_path / "again" / file).read_bytes() == (place / name / file).read_bytes()


def test_options_go_over_the_config(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    line = f"train --config own/config.toml --seed 9 --split 2 --set epochs=3 --set train.lr=0.5 --out {out} --quiet"
    assert command(f"{line} --threads 1").code == 0
    content = report(out)
    assert (content["seed"], content["split"]) == (9, 2)
    assert (content["config"]["train"]["epochs"], content["config"]["train"]["lr"]) == (3, 0.5)
    assert content["config"]["model"] == report(place / "own")["config"]["model"]


def test_overwrite(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert command(f"train graph {TINY} --model mlp --out {out}").code == 0
    assert command(f"train graph {TINY} --model gcn --out {out} --overwrite --seed 2").code == 0
    assert (report(out)["model"], report(out)["seed"]) == ("gcn", 2)
    assert len((out / "metrics.jsonl").read_text().splitlines()) == 2


def test_default_directory(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(f"train {place / 'graph'} {TINY} --model mlp --seed 4").code == 0
    assert report(tmp_path / "runs" / "graph-mlp-0-4")["dataset"] == "graph"


def test_model_beside(place: Path, tmp_path: Path) -> None:
    """The other models see the same data and the same split, and what was set of training."""
    out = tmp_path / "run"
    line = f"train wine {TINY} --split 1 --seed 3 --set epochs=3 --set lr=0.02 --set neighbors=4"
    outcome = command(f"{line} --set solver=anderson --beside mlp --beside gcn --out {out}")
    assert outcome.code == 0, outcome
    first = report(out)
    for name in ("mlp", "gcn"):
        assert name in outcome.stdout
        other = report(out / "beside" / name)
        assert other["model"] == name
        assert (other["split"], other["seed"]) == (1, 3)
        assert other["config"]["data"] == first["config"]["data"]
        for key in ("epochs", "lr"):  # what --set says of training; the rest are each model's own defaults
            assert other["config"]["train"][key] == first["config"]["train"][key]


def test_features_of_an_own_graph_are_prepared_as_asked(place: Path, tmp_path: Path) -> None:
    """raw, row and standard are three preparations, also of one's own files."""
    weights = {}
    for features in ("raw", "row", "standard"):
        out = tmp_path / features
        assert command(f"train graph {TINY} --model mlp --set features={features} --out {out}").code == 0
        weights[features] = (out / "weights.safetensors").read_bytes()
    assert len(set(weights.values())) == 3


def test_whole_numbers_as_fractions(place: Path, tmp_path: Path) -> None:
    """The refusal of fractions that are too large offers whole numbers of nodes."""
    line = f"train wine {TINY} --model mlp --out {tmp_path / 'run'} --set fractions="
    assert "whole numbers" in command(f"{line}[0.9,0.9,0.9]").stderr
    assert command(f"{line}[60,60,58]").code == 0


def test_empty_test_part(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert command(f"train wine {TINY} --model mlp --out {out} --set fractions=[0.5,0.5,0.0]").code == 0
    assert report(out)["test"] is None
    result = json.loads(command(f"evaluate {out} --json").stdout)
    assert "test" not in result


def test_quiet_and_progress(place: Path, tmp_path: Path) -> None:
    line = "train graph --threads 1 --model mlp --set epochs=4 --out"
    assert "epoch 4/4" in command(f"{line} {tmp_path / 'a'}").stdout
    assert "epoch 4/4" not in command(f"{line} {tmp_path / 'b'} --quiet").stdout


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_output_that_cannot_show_every_letter(place: Path, encoding: str, tmp_path: Path) -> None:
    """Windows writes cp1252 to files and pipes."""

    def narrow() -> None:
        sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115 (it stays open)

    child = Child(f"train graph {TINY} --model gind --out {tmp_path / 'run'}", tmp_path / "log", narrow)
    assert child.wait() == 0, child.log.read_text(encoding)
    for line in ("datasets", "keys", f"certify {tmp_path / 'run'}", f"predict {tmp_path / 'run'}"):
        child = Child(line, tmp_path / "log", narrow)
        assert child.wait() == 0, child.log.read_text(encoding)


@pytest.mark.parametrize("line", ["datasets", "keys", "certify own"])
def test_reader_that_has_enough(place: Path, line: str, tmp_path: Path) -> None:
    """`gind datasets | head -1`."""

    def close() -> None:
        read, write = os.pipe()
        os.dup2(write, 1)
        os.close(read)
        os.close(write)

    child = Child(line, tmp_path / "log", close)
    assert child.wait() == 1
    assert child.text == ""


def test_advice_after_a_signal_can_be_pasted(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the name of the directory has blanks and brackets."""
    real = MetricsFile.epoch

    def interrupted(self: MetricsFile, record: EpochRecord) -> None:
        real(self, record)
        os.kill(os.getpid(), signal.SIGTERM)

    out = tmp_path / "my [bold] run"
    monkeypatch.setattr(MetricsFile, "epoch", interrupted)
    outcome = command(f"train graph {TINY} --model mlp --out {shlex.quote(str(out))}")
    monkeypatch.undo()
    assert outcome.code == 1
    (advice,) = (line for line in outcome.stdout.splitlines() if "--resume" in line)
    assert command(advice.partition(": gind ")[2]).code == 0
    assert report(out)["training"]["epochs"] == 2


def test_datasets(place: Path) -> None:
    outcome = command("datasets --json --data data")
    assert outcome.code == 0
    table = {row["name"]: row for row in json.loads(outcome.stdout)}
    assert table.keys() == DATASETS.keys()
    assert table["karate"]["nodes"] == 34
    assert [table[name]["on disk"] for name in ("mutag", "cora")] == ["yes", "no"]
    text = command("datasets")
    assert text.code == 0
    assert "karate" in text.stdout


def test_datasets_check(place: Path) -> None:
    good = command("datasets check karate")
    assert good.code == 0
    assert "nodes: 34" in good.stdout
    bad = command("datasets check mutag --data data")  # not the real one
    assert bad.code == 1
    assert "expected" in bad.stdout


def test_doctor(place: Path) -> None:
    outcome = command("doctor --data data")
    assert outcome.code == 0
    for word in (gind.__version__, torch.__version__, "threads", "kernels on cpu", "mutag", "karate"):
        assert word in outcome.stdout
    assert command("doctor").code == 0


def test_doctor_says_where_compiled_code_is_kept(tmp_path: Path) -> None:
    """Or why it is not: numba looks for a place when it is imported, hence a process of its own."""
    script = Path(sys.executable).with_name("gind")
    environment = os.environ | {"GIND_CACHE": str(tmp_path / "c"), "NUMBA_CACHE_DIR": str(tmp_path / "numba")}

    def told(**more: str) -> str:
        done = subprocess.run([script, "doctor"], env=environment | more, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return "".join(done.stdout.split())

    both = told()
    assert f"Cloopskeptin{tmp_path}/c" in both
    assert f"numbaloopskeptin{tmp_path}/numba" in both
    neither = told(GIND_NATIVE="0", NUMBA_DISABLE_JIT="1")
    assert "Cloopsnotthere:GIND_NATIVE=0isset" in neither
    assert "numbaloopsnotthere:NUMBA_DISABLE_JITisset" in neither


@pytest.mark.parametrize("model", MODELS)
def test_keys_are_shown(model: str) -> None:
    outcome = command(f"keys {model}")
    assert outcome.code == 0
    for entries in keys_by_section(model).values():
        for name in entries:
            assert name in outcome.stdout


@pytest.mark.parametrize("model", MODELS)
def test_every_key_can_be_set_to_its_default(model: str) -> None:
    """What `gind keys` prints as a default is understood as that default, and no key is in two sections."""
    sections = keys_by_section(model)
    names = [name for entries in sections.values() for name in entries]
    assert len(names) == len(set(names))
    for section, entries in sections.items():
        for name, key in entries.items():
            assert not key.required, name
            printed = json.loads(json.dumps(plain(key.default, KINDS)))
            assert parse(name, key.type, printed, KINDS) == key.default
            table: dict[str, Any] = {"dataset": "karate", "model": {"name": model}}
            table[section] = {**table.get(section, {}), name: printed}
            spec = make_spec(table)
            assert make_spec(spec.table(), use_defaults=False).table() == spec.table()


@pytest.mark.parametrize("kind", [(family, name) for family, kinds in KINDS.items() for name in kinds], ids=str)
def test_every_kind_survives_a_config(kind: tuple[type, str]) -> None:
    """An object of every kind, with its defaults, written to TOML values and read again."""
    family, name = kind
    arguments = {"eta": 0.1} if "eta" in inspect.signature(KINDS[family][name]).parameters else {}
    value = KINDS[family][name](**arguments)
    assert parse("key", family, plain(value, KINDS), KINDS) == value


def test_every_option_of_the_model_is_a_key() -> None:
    known = {key.name for key in keys_by_section("gind")["model"].values()}
    from_data = {"self", "in_channels", "out_channels", "channels", "task", "options"}
    for target in (GIND.__init__, Diffusion.__init__):
        missing = set(inspect.signature(target).parameters) - known - from_data
        assert not missing


def test_keys_reach_the_model(place: Path, tmp_path: Path) -> None:
    """Dotted keys, tables and kinds end up in the layer."""
    out = tmp_path / "run"
    keys = {
        "solver.kind": "anderson",
        "solver.memory": 3,
        "stop": "{tol=1e-3,max_steps=77}",
        "adjoint": "phantom",
        "adjoint.steps": 2,
        "flux-channels": 6,
        "regularizer": '{kind="laplacian",eta=0.25}',
        "edge_norm": "frozen",
        "scaling": "symmetric",
        "injection": "separate",
        "output": "flux",
    }
    text = " ".join(f"--set '{key}={value}'" for key, value in keys.items())
    outcome = command(f"train graph {TINY} {text} --out {out}")
    assert outcome.code == 0, outcome
    model = load_artefact(out).model
    assert isinstance(model, GIND)
    layer = model.layers[0]
    assert isinstance(layer, Diffusion)
    assert layer.solver == gind.Anderson(memory=3)
    assert layer.stop == gind.Stop(1e-3, 77)
    assert layer.adjoint == gind.Phantom(steps=2)
    assert layer.flux_channels == 6
    assert layer.regularizer == gind.Laplacian(0.25)
    assert layer.edge_norm == gind.FrozenNorm()
    assert layer.scaling == gind.Symmetric()
    assert (layer.injection, layer.output) == ("separate", "flux")


def test_config_counts_for_models_beside_too(place: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('dataset = "wine"\n[train]\nepochs = 3\nlr = 0.5\n[model]\nname = "mlp"\nhidden = 4\n')
    out = tmp_path / "run"
    assert command(f"train --config {config} --beside gcn --quiet --out {out}").code == 0
    for place_ in (out, out / "beside" / "gcn"):
        assert report(place_)["config"]["train"]["epochs"] == 3
        assert report(place_)["config"]["train"]["lr"] == 0.5


def test_resume_does_not_train_models_beside_further(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert command(f"train wine {TINY} --beside mlp --out {out}").code == 0
    before = (out / "beside/mlp/weights.safetensors").read_bytes()
    assert command(f"train --resume --beside mlp --quiet --out {out}").code == 0
    assert (out / "beside/mlp/weights.safetensors").read_bytes() == before
    assert report(out / "beside/mlp")["training"]["epochs"] == report(out)["training"]["epochs"]


def test_a_table_without_kind_is_of_the_default_kind(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert command(f"train wine {TINY} --model mlp --set schedule.warmup=2 --out {out}").code == 0
    assert report(out)["config"]["train"]["schedule"] == {"kind": "constant", "warmup": 2}
