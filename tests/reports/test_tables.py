"""The page: what is far below the paper is marked and told, what is missing is said, the bytes are always the same."""

from pathlib import Path

import pytest
from report_cases import CERTIFICATE, sheet_of, write_report, write_sheet

from gind.experiments import ConfigError
from gind.experiments.sheet import Cell, Sheet, read_sheet
from gind.reports import Remarks, collect, compare, load_paper, read_remarks, sheet_page

ROOT = Path(__file__).parents[2]


def page(sheet: Sheet, results: Path, remarks: Remarks | None = None) -> str:
    return sheet_page(collect(sheet, results), load_paper(), remarks or Remarks())


def lines_with(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_a_cell_stands_beside_the_paper(tmp_path: Path) -> None:
    cells = [Cell("texas", "gcn", split) for split in (0, 1)]
    for cell, share in zip(cells, (0.60, 0.66), strict=True):
        write_report(tmp_path, cell, test=share, validation=0.7)
    text = page(sheet_of(*cells), tmp_path)
    assert "| gcn | 63.00 ± 4.24 | 2/2 | 64.05 ± 5.28 | -1.05 | 70.00 ± 0.00 | 2.0 |" in text
    assert "| majority class | 40.00 |" in text
    assert "| gind |  |  | 86.22 ± 5.19 |  |  |  |" in text  # of the paper alone
    assert "0 are more than 2 points below it" in text
    assert "▼ |" not in text
    assert "sample standard deviation" in text


@pytest.mark.parametrize(("share", "below"), [(0.6205, False), (0.6204, True), (0.9, False)])
def test_more_than_two_points_below_is_marked_and_told(tmp_path: Path, share: float, below: bool) -> None:
    cell = Cell("texas", "gcn", 0)
    write_report(tmp_path, cell, test=share)
    text = page(sheet_of(cell), tmp_path, Remarks({"gcn": {"all": "Why it is so."}}))
    assert ("▼ |" in text) is below
    assert ("- gcn (-2.01): Why it is so." in text) is below


def test_a_remark_on_the_dataset_goes_before_that_on_all() -> None:
    remarks = Remarks({"gcn": {"all": "a", "texas": "b"}})
    assert [remarks.find("gcn", "texas"), remarks.find("gcn", "cora"), remarks.find("gat", "cora")] == ["b", "a", ""]


def test_what_is_missing_is_empty_and_counted(tmp_path: Path) -> None:
    cells = [Cell(dataset, "gcn", split) for dataset in ("texas", "cora") for split in range(3)]
    write_report(tmp_path, cells[0])
    text = page(sheet_of(*cells), tmp_path)
    assert "1 of its 6 runs is there, 5 are missing, and 1 of its 2 cells (a system on a dataset) has" in text
    assert "| gcn | 50.00 | 1/3 |" in text
    assert "| gcn |  | 0/3 | 85.77 |  |  |  |" in text
    assert "(-14.05" not in text


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (1, "1 of its 4 runs is there, 3 are missing, and 3 of its 4 cells (a system on a dataset) have no run yet."),
        (2, "2 of its 4 runs are there, 2 are missing, and 2 of its 4 cells (a system on a dataset) have no run yet."),
        (3, "3 of its 4 runs are there, 1 is missing, and 1 of its 4 cells (a system on a dataset) has no run yet."),
        (4, "4 of its 4 runs are there, 0 are missing, and 0 of its 4 cells (a system on a dataset) have no run yet."),
    ],
)
def test_verbs_agree_with_their_counts(tmp_path: Path, there: int, words: str) -> None:
    cells = [Cell("texas", model, 0) for model in ("gcn", "gat", "mlp", "sage")]
    for cell in cells[:there]:
        write_report(tmp_path, cell, test=0.1 if cell.model == "gcn" else 0.6162)
    text = page(sheet_of(*cells), tmp_path)
    assert words in text


def test_cells_with_missing_runs_are_not_counted(tmp_path: Path) -> None:
    cells = [Cell("texas", model, split) for model in ("gcn", "gat") for split in range(10)]
    for cell in cells[:-1]:
        write_report(tmp_path, cell, test=0.1)
    text = page(sheet_of(*cells), tmp_path)
    assert "The paper has 2 cells of these too. Of the 1 that have all their runs here, 1 is more than 2" in text


def test_commits_are_counted_where_they_are_known(tmp_path: Path) -> None:
    cells = [Cell("texas", "gcn", split) for split in range(4)]
    for cell, commit in zip(cells, ("", "b", "a", "b"), strict=True):
        write_report(tmp_path, cell, versions={"commit": commit} if commit else {})
    assert "- 4 runs: gind 0.2.0 · torch 2.13.0; commits: 1 of a, 2 of b\n" in page(sheet_of(*cells), tmp_path)


def test_settings_of_a_search_are_told_apart_from_test_parts(tmp_path: Path) -> None:
    cell = Cell("texas", "gcn", 0)
    write_report(tmp_path, cell)
    head = page(sheet_of(cell), tmp_path).split("\n## ")[0]
    (line,) = lines_with(head, "- Settings from a search (experiments/searches)")
    assert line.endswith("so a node that validates in one is tested in another.")


def test_corrected_cornell_stands_beside_the_old_file(tmp_path: Path) -> None:
    old, new = Cell("cornell-pre2022", "gcn", 0), Cell("cornell", "gcn", 0)
    write_report(tmp_path, old, test=0.6)
    write_report(tmp_path, new, test=0.45, majority=0.3)
    text = page(sheet_of(new, old), tmp_path)
    assert "### cornell-pre2022 (Cornell)" in text
    assert "| gcn | 60.00 | 1/1 | 59.19 ± 3.51 | +0.81 | 60.00 | 2.0 | 45.00 | 1/1 |" in text
    assert "| majority class | 40.00 |  |  |  |  |  | 30.00 |  |" in text
    assert "### cornell\n" not in text
    alone = page(sheet_of(new), tmp_path)
    assert "## Datasets that the paper does not have" in alone
    assert "| gcn | 45.00 | 1/1 |  |  | 60.00 | 2.0 |" in alone


def test_mixed_settings_and_strangers_are_told(tmp_path: Path) -> None:
    cells = [Cell("texas", "gcn", split) for split in (0, 1)]
    write_report(tmp_path, cells[0])
    write_report(tmp_path, cells[1], train={"lr": 0.5})
    write_report(tmp_path, Cell("texas", "gcn", 7))
    text = page(sheet_of(*cells), tmp_path)
    assert "- gcn on texas: settings differ between splits (lr)." in text
    assert "Left out: 1 report that the sheet does not name." in text


def test_convergence_has_a_line_for_each_implicit_row(tmp_path: Path) -> None:
    cells = [Cell(dataset, model, 0) for dataset in ("texas", "cora") for model in ("gind", "gcn", "ignn")]
    for cell in cells:
        bound = {"bound": None} if cell.model == "ignn" else {}
        write_report(tmp_path, cell, certificate=None if cell.model == "gcn" else CERTIFICATE | bound)
    text = page(sheet_of(*cells), tmp_path).split("## Convergence")[1].split("## Settings")[0]
    assert lines_with(text, "| g") + lines_with(text, "| i") == [
        "| gind | texas | 1.0e-04 | 9.0e-05 | 1/1 | 2.0e-02 | 1/1 | 0 |",
        "| gind | cora | 1.0e-04 | 9.0e-05 | 1/1 | 2.0e-02 | 1/1 | 0 |",
        "| ignn | texas | 1.0e-04 | 9.0e-05 | 1/1 | none | 0/1 | 0 |",
        "| ignn | cora | 1.0e-04 | 9.0e-05 | 1/1 | none | 0/1 | 0 |",
    ]


def test_settings_show_what_is_shared_and_what_differs(tmp_path: Path) -> None:
    cells = [Cell("texas", "gcn", 0), Cell("cora", "gcn", 0), Cell("mutag", "wl", 0)]
    write_report(tmp_path, cells[0])
    write_report(tmp_path, cells[1], model={"hidden": 16})
    write_report(tmp_path, cells[2], training={"stopped_by": "fit_directly"})
    text = page(sheet_of(*cells), tmp_path).split("## Settings")[1]
    # one graph has no batches, GCN no implicit layers, and nothing is shown that is off
    gcn, wl = (line for line in text.splitlines() if line.startswith("On every dataset: "))
    shared = gcn.removeprefix("On every dataset: ").rstrip(".").split(" · ")
    assert {"dropout 0.5", "lr 0.01", "schedule constant (warmup 0)", "patience_counts all"} <= set(shared)
    assert not any(
        setting.startswith(("hidden", "batch_size", "implicit_lr")) or "none" in setting for setting in shared
    )
    assert "| texas | 32 |" in text
    assert "| cora | 16 |" in text
    assert "hidden 32" in wl
    assert "lr " not in wl  # fit in closed form: no keys of training
    assert "All epochs of all 3 runs, validation included, took 6 s together." in text


@pytest.mark.parametrize(
    ("cell", "model", "read"),
    [
        (Cell("texas", "ignn", 0), {}, set()),
        (Cell("texas", "eignn", 0), {}, set()),
        (Cell("mutag", "cgs", 0), {}, set()),
        (Cell("texas", "gcnii", 0), {}, set()),
        (Cell("texas", "gcnii", 0), {"own_group": True}, {"implicit_lr", "implicit_weight_decay"}),
        (Cell("texas", "gind", 0), {}, {"implicit_lr", "implicit_weight_decay", "warm_start"}),
        (Cell("texas", "gind", 0, variant="short"), {}, {"implicit_lr", "implicit_weight_decay", "warm_start"}),
    ],
    ids=["ignn", "eignn", "cgs", "gcnii", "gcnii with a group", "gind", "a variant of gind"],
)
def test_settings_leave_out_what_the_model_does_not_read(
    tmp_path: Path, cell: Cell, model: dict[str, object], read: set[str]
) -> None:
    write_report(tmp_path, cell, certificate=None if cell.model == "gcnii" else CERTIFICATE, model=model)
    text = page(sheet_of(cell), tmp_path).split("## Settings")[1]
    (line,) = lines_with(text, "On every dataset: ")
    keys = {setting.split()[0] for setting in line.removeprefix("On every dataset: ").split(" · ")}
    assert keys & {"implicit_lr", "implicit_weight_decay", "warm_start"} == read


def test_the_page_depends_on_nothing_but_the_reports(tmp_path: Path) -> None:
    cells = [Cell("texas", model, split) for model in ("gcn", "gat") for split in range(4)]
    for results, order in ((tmp_path / "a", cells), (tmp_path / "b", cells[::-1])):
        for cell in order:
            write_report(results, cell, test=0.1 * cell.split + 0.013, seconds=0.1 * cell.split)
    assert page(sheet_of(*cells), tmp_path / "a") == page(sheet_of(*cells), tmp_path / "b")


def test_every_dataset_is_compared_once() -> None:
    sheet = read_sheet(ROOT / "experiments" / "baselines.toml")
    results = ROOT / "results"
    if not (results / sheet.name).exists():
        pytest.skip("results/ is not there")
    entries = [entry for one in compare(collect(sheet, results), load_paper()) for entry in one.entries]
    names = [name for entry in entries for name in (entry.dataset, entry.beside) if name]
    assert sorted(names) == sorted({cell.dataset for cell in sheet.cells})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gnc]\nall = 'x'", r"no model 'gnc'\. Did you mean 'gcn'"),
        ("[gcn]\ntexsa = 'x'", "does not run gcn on 'texsa'"),
        ("[gcn]\nall = 3", "one text"),
        ("gcn = 'x'", "one text"),
        ("all = 3", "a text"),
        ("[gcn", "not valid TOML"),
    ],
)
def test_remarks_that_fit_no_cell_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = write_sheet(tmp_path, ["texas"], ["gcn"])
    (tmp_path / "remarks").mkdir()
    (tmp_path / "remarks" / "s.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_remarks(path, read_sheet(path))


def test_remarks_are_one_line(tmp_path: Path) -> None:
    path = write_sheet(tmp_path, ["texas"], ["gcn"])
    assert read_remarks(path, read_sheet(path)) == Remarks()
    (tmp_path / "remarks").mkdir()
    (tmp_path / "remarks" / "s.toml").write_text('[gcn]\ntexas = """\nOne.\n  Two."""')
    assert read_remarks(path, read_sheet(path)).find("gcn", "texas") == "One. Two."


@pytest.mark.parametrize("name", ["baselines", "searched"])
def test_the_committed_page_is_that_of_the_committed_reports(name: str) -> None:
    path = ROOT / "experiments" / f"{name}.toml"
    if not (ROOT / "results" / name).exists():
        pytest.skip("results/ is not there")
    sheet = read_sheet(path)
    made = page(sheet, ROOT / "results", read_remarks(path, sheet))
    committed = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert made == committed, f"run: gind report experiments/{name}.toml --out docs/{name}.md"
