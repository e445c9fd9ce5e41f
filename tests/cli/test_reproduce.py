"""`gind reproduce`: the list of items, all of them in small, and what is refused."""

from pathlib import Path

import pytest
from cli_cases import command, write_molecules

from gind.experiments.items import ITEMS, WITHOUT_RUNS, find_item


def test_it_lists_the_items(tmp_path: Path) -> None:
    outcome = command(f"reproduce --results {tmp_path}")
    assert outcome.code == 0, outcome.stderr
    for name, label in ITEMS.items():
        line = next(line for line in outcome.stdout.splitlines() if line.split()[:1] == [name])
        assert (label or "ours") in line
    assert "0/10" in outcome.stdout  # PPI


def test_quick_runs_every_kind_of_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    data = write_molecules(tmp_path / "data", graphs=12)
    outcome = command(f"reproduce --quick --data {data}")
    assert outcome.code == 0, outcome.stdout
    assert " 0 failed" in outcome.stdout
    assert "missing" not in outcome.stdout
    assert "ppi: no small data is there" in outcome.stdout
    for text in ("mutag", "chains", "wine", "exact gradient", "Dirichlet energy", "ratio"):
        assert text in outcome.stdout, text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for line, message in (
        ("reproduce heterophylic", "Did you mean 'heterophilic'"),
        ("reproduce --quick my.toml", "--quick is for the items"),
        ("reproduce homophilic --dataset texas", "homophilic has no dataset 'texas'"),
        (f"reproduce {tmp_path}/none.toml", "There is no file"),
        ("report grahps", "Did you mean 'graphs'"),
        (f"report graphs --out {tmp_path}/no/page.md", "no directory"),
        (f"report graphs --html {tmp_path}/no/x.html", f"no directory {tmp_path}/no to write x.html into"),
        ("reproduce homophilic --splits 5-2", "--splits"),
        ("reproduce homophilic --splits ''", "--splits"),
        ("reproduce homophilic --splits 0-99", "homophilic has no split 10"),
        ("reproduce --dataset texas", "gind reproduce ITEM"),
        ("reproduce --splits 0", "gind reproduce ITEM"),
        ("reproduce --quick --model gind", "--quick chooses its runs itself"),
        ("reproduce graphs --quick --splits 0", "--quick chooses its runs itself"),
        ("reproduce training-time --model gind", "take turns in one run"),
        (f"reproduce {find_item('training-time')} --dataset pubmed --model gind", "Leave out --model."),
    ):
        outcome = command(line)
        assert (outcome.code, outcome.stderr.count("\n")) == (2, 1), line
        assert message in outcome.stderr, outcome.stderr


@pytest.mark.parametrize(
    ("last", "options", "message"),
    [
        ('models = ["mlp"]\ndatasets = ["wine"]\nset = { layer = 3 }', "", "wine/mlp cannot be run: There is no key"),
        ('models = ["mlpp"]\ndatasets = ["wine"]', "", "wine/mlpp cannot be run: There is no model"),
        ('models = ["mlp"]\ndatasets = ["wien"]', "", "Did you mean 'wine'?"),
        ('models = ["gcn"]\ndatasets = ["mutag"]', "", "mutag/gcn cannot be run: The model gcn is for node"),
        (
            'models = ["mlp"]\ndatasets = ["wine"]\nset = { protocol = "paper" }',
            "",
            'mlp cannot be run: protocol "paper"',
        ),
        ('models = ["mlp"]\ndatasets = ["wine"]\nset = { length = 3 }', "", "wine has no option 'length'"),
        ('models = ["mlp"]\ndatasets = ["./none"]\nset = { length = 3 }', "", "length does not apply to a graph of"),
        ('models = ["sgc"]\ndatasets = ["wine"]\nset = { splits = "kfold", folds = 1 }', "", "there is no split 1."),
        ('models = ["mlp"]\ndatasets = ["./none"]', "", "There is no graph at ./none"),
        ('models = ["mlp"]\ndatasets = ["texas"]', "--data empty", "files are not under empty"),
        ('models = ["mlp"]\ndatasets = ["texas"]', "--data none", "The data directory none is not a directory"),
    ],
)
@pytest.mark.parametrize("turns", ["", "turns = true\n"])
def test_a_mistake_in_the_last_cell_is_told_before_the_first_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str, options: str, message: str, turns: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network here")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    monkeypatch.setenv("GIND_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    right = '[[cells]]\ndatasets = ["wine"]\nmodels = ["gcn"]\nsplits = "0"\nset = { epochs = 1 }\n'
    (tmp_path / "s.toml").write_text(f'{turns}{right}[[cells]]\nsplits = "1"\n{last}\n')
    outcome = command(f"reproduce s.toml {options}")
    assert (outcome.code, outcome.stderr.count("\n"), outcome.stdout) == (2, 1, ""), outcome
    assert message in outcome.stderr
    assert not (tmp_path / "runs").exists()
    assert not (tmp_path / "results").exists()


def test_a_mistake_in_a_run_that_was_not_selected_is_no_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    block = '[[cells]]\ndatasets = ["wine"]\nmodels = ["{}"]\nsplits = "0"\nset = {{ epochs = 1 }}\n'
    (tmp_path / "s.toml").write_text(block.format("mlp") + block.format("mlpp"))
    assert command("reproduce s.toml --model mlp").code == 0


@pytest.mark.parametrize("dataset", ["texas", "wine", "mutag"])
def test_a_split_that_a_dataset_lacks_is_refused(dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    block = f'[[cells]]\ndatasets = ["{dataset}"]\nmodels = ["mlp"]\nsplits = "0-10"\n'
    (tmp_path / "s.toml").write_text(block)
    outcome = command("reproduce s.toml")
    assert (outcome.code, outcome.stderr.count("\n"), outcome.stdout) == (2, 1, ""), outcome
    assert f"{dataset} has splits 0 to 9, there is no split 10." in outcome.stderr


@pytest.mark.parametrize("option", ["--results", "--work"])
@pytest.mark.parametrize("place", ["s.toml", "s.toml/below/it", "/proc/nothing"])
@pytest.mark.parametrize("turns", ["true", "false"])
def test_a_place_that_cannot_be_written_is_refused_before_the_first_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, place: str, turns: str
) -> None:
    monkeypatch.chdir(tmp_path)
    block = '[[cells]]\ndatasets = ["wine"]\nmodels = ["mlp"]\nsplits = "0"\n'
    (tmp_path / "s.toml").write_text(f"turns = {turns}\n{block}")
    outcome = command(f"reproduce s.toml {option} {place}")
    assert (outcome.code, outcome.stderr.count("\n"), outcome.stdout) == (2, 1, ""), outcome
    assert f"{option} {place} cannot be written" in outcome.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


def test_where_systems_take_turns_a_dataset_may_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(
        'turns = true\n[[cells]]\ndatasets = ["wine", "./none"]\nmodels = ["mlp", "sgc"]\nsplits = "0"\n'
        "set = { epochs = 1 }\n"
    )
    assert "There is no graph at ./none" in command("reproduce s.toml").stderr
    outcome = command("reproduce s.toml --dataset wine")
    assert outcome.code == 0, outcome
    assert "2 done, 0 were there, 0 failed" in outcome.stdout


def test_a_directory_of_data_that_nothing_reads_need_not_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(
        '[[cells]]\ndatasets = ["wine"]\nmodels = ["mlp"]\nsplits = "0"\nset = { epochs = 1 }\n'
    )
    assert command("reproduce s.toml --data none").code == 0


@pytest.mark.parametrize("name", WITHOUT_RUNS)
def test_nothing_has_to_be_run_for_some_items(name: str) -> None:
    for line in (f"reproduce {name}", f"reproduce {name} --quick"):
        outcome = command(line)
        assert outcome.code == 0
        assert outcome.stdout.splitlines() == [f"There is nothing to run: gind report {name} shows it."]
