"""Reports to rows: the numbers are NumPy's, nothing is mixed silently, and what is no report is refused in one line."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import CERTIFICATE, content, sheet_of, write_report

from gind.errors import UserError
from gind.experiments.sheet import Cell, Sheet
from gind.reports import collect

SHARES = [0.5, 0.75, 0.1, 0.625]
CELLS = [Cell("texas", "gcn", split) for split in range(len(SHARES))]


def test_mean_and_sample_deviation_are_those_of_numpy(tmp_path: Path) -> None:
    for cell, share in zip(CELLS, SHARES, strict=True):
        write_report(tmp_path, cell, test=share, validation=share / 2, majority=share / 4, seconds=cell.split + 1.0)
    collection = collect(sheet_of(*CELLS), tmp_path)
    (row,) = collection.rows
    assert row.test.mean == pytest.approx(100 * np.mean(SHARES))
    assert row.test.std == pytest.approx(100 * np.std(SHARES, ddof=1))
    assert row.validation is not None
    assert row.validation.mean == pytest.approx(50 * np.mean(SHARES))
    assert row.majority == pytest.approx(25 * np.mean(SHARES))
    assert (row.metric, row.runs, row.splits, row.expected) == ("accuracy", 4, 4, 4)
    assert (row.seconds_per_run, collection.seconds) == (2.5, 10.0)
    assert row.convergence is None
    assert row.notes == ()


def test_one_run_has_no_deviation(tmp_path: Path) -> None:
    write_report(tmp_path, CELLS[0])
    (row,) = collect(sheet_of(*CELLS), tmp_path).rows
    assert (row.test.mean, row.test.std, row.runs, row.expected) == (50.0, None, 1, 4)


def test_seeds_are_runs_of_the_same_split(tmp_path: Path) -> None:
    cells = [Cell("texas", "gcn", 0, seed) for seed in (0, 1, 2)]
    for cell in cells:
        write_report(tmp_path, cell)
    (row,) = collect(sheet_of(*cells), tmp_path).rows
    assert (row.runs, row.splits) == (3, 1)


def test_what_is_missing_is_counted_and_strangers_are_left_out(tmp_path: Path) -> None:
    other = Cell("texas", "gat", 0)
    write_report(tmp_path, CELLS[0])
    write_report(tmp_path, Cell("texas", "gcn", 9), test=0.9)
    collection = collect(sheet_of(*CELLS, other), tmp_path)
    assert collection.missing == (*CELLS[1:], other)
    assert collection.strangers == 1
    assert collection.places == {("texas", "gcn"): tuple(CELLS), ("texas", "gat"): (other,)}
    assert [row.test.mean for row in collection.rows] == [50.0]
    assert collection.row("texas", "gat") is None


def test_sheets_never_mix(tmp_path: Path) -> None:
    write_report(tmp_path, CELLS[0], test=0.25)
    write_report(tmp_path, CELLS[1], test=1.0, sheet="other")
    (row,) = collect(sheet_of(*CELLS), tmp_path).rows
    assert (row.test.mean, row.runs) == (25.0, 1)
    (row,) = collect(sheet_of(*CELLS, name="other"), tmp_path).rows
    assert (row.test.mean, row.runs) == (100.0, 1)


def test_different_settings_and_versions_are_told(tmp_path: Path) -> None:
    write_report(tmp_path, CELLS[0])
    write_report(tmp_path, CELLS[1], train={"lr": 0.5}, model={"extra": 1})
    write_report(tmp_path, CELLS[2], versions={"gind": "0.3.0"})
    collection = collect(sheet_of(*CELLS), tmp_path)
    assert collection.rows[0].notes == (
        "settings differ between splits (extra, lr)",
        "versions of gind differ between runs",
    )
    assert [(versions["gind"], count) for versions, count in collection.versions] == [("0.2.0", 2), ("0.3.0", 1)]


def test_the_worst_equilibrium_counts(tmp_path: Path) -> None:
    certificates: list[dict[str, Any]] = [
        CERTIFICATE,
        CERTIFICATE | {"residual": 2e-3, "reached": False, "bound": 0.5},
        CERTIFICATE | {"bound": None, "proven": False},
    ]
    for cell, certificate in zip(CELLS, certificates, strict=False):
        write_report(tmp_path, cell, certificate=certificate, training={"unsolved": 3})
    solved = collect(sheet_of(*CELLS), tmp_path).rows[0].convergence
    assert solved is not None
    assert (solved.residual, solved.bound, solved.tolerance) == (2e-3, 0.5, 1e-4)
    assert (solved.reached, solved.proven, solved.runs, solved.unsolved) == (2, 2, 3, 9)


def test_a_residual_that_is_not_finite_is_the_worst(tmp_path: Path) -> None:
    write_report(tmp_path, CELLS[0], certificate=CERTIFICATE | {"residual": None, "bound": None, "reached": False})
    write_report(tmp_path, CELLS[1], certificate=CERTIFICATE)
    solved = collect(sheet_of(*CELLS), tmp_path).rows[0].convergence
    assert solved is not None
    assert (solved.residual, solved.bound, solved.reached) == (math.inf, 0.02, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_name": "gat"}, "report of texas/gat/0-0"),
        ({"split": 5}, "report of texas/gcn/5-0"),
        ({"test": None}, "test must be a table"),
        ({"test": {"loss": 1.0}}, "one metric"),
        ({"test": {"accuracy": None, "loss": 1.0}}, r"test\.accuracy must be a number"),
        ({"test": {"accuracy": 65.0, "loss": 1.0}}, "share from 0 to 1, got 65"),
        ({"test": {"accuracy": True, "loss": 1.0}}, r"test\.accuracy must be a number"),
        ({"validation": {"roc_auc": 0.5}}, r"validation\.accuracy"),
        ({"seconds": "long"}, "seconds must be a number"),
        ({"certificate": {"residual": 1e-5}}, r"certificate\.bound"),
        ({"certificate": CERTIFICATE | {"reached": "yes"}}, r"certificate\.reached"),
        ({"config": {"dataset": "texas"}}, r"config\.data must be a table"),
        ({"versions": []}, "versions must be a table"),
        ({"training": {"unsolved": None}}, r"training\.unsolved"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = write_report(tmp_path, CELLS[0])
    name = changes.pop("model_name", "gcn")
    path.write_text(json.dumps(content(CELLS[0]) | {"model": name} | changes))
    with pytest.raises(UserError, match=message) as caught:
        collect(sheet_of(*CELLS), tmp_path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_what_is_no_json_is_refused(tmp_path: Path, text: bytes) -> None:
    path = write_report(tmp_path, CELLS[0])
    path.write_bytes(text)
    with pytest.raises(UserError, match=r"report\.json"):
        collect(sheet_of(*CELLS), tmp_path)


def test_a_report_of_other_keys_is_refused(tmp_path: Path) -> None:
    cell = Cell("texas", "gcn", 0, keys=(("lr", 0.5),))
    write_report(tmp_path, cell, train={"lr": 0.5})
    assert len(collect(sheet_of(cell), tmp_path).rows) == 1
    path = write_report(tmp_path, cell, train={"lr": 0.25})
    with pytest.raises(UserError, match=r"other keys than the sheet's: lr is 0\.25, not 0\.5") as caught:
        collect(sheet_of(cell), tmp_path)
    assert str(path) in str(caught.value)


def test_metrics_of_a_row_must_agree(tmp_path: Path) -> None:
    write_report(tmp_path, CELLS[0])
    write_report(tmp_path, CELLS[1], test={"roc_auc": 0.5}, validation={"roc_auc": 0.5})
    with pytest.raises(UserError, match="different metrics: accuracy, roc_auc"):
        collect(sheet_of(*CELLS), tmp_path)


def test_nothing_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no report of the sheet s"):
        collect(sheet_of(*CELLS), tmp_path)


def test_a_key_that_is_newer_than_a_report_had_its_default(tmp_path: Path) -> None:
    cells = [Cell("texas", "gind", split) for split in range(2)]
    write_report(tmp_path, cells[0], model={"scaling": {"kind": "row", "augmented": True}})
    now = {"scaling": {"kind": "row", "augmented": True, "loops": False, "factor": 2.0}, "depth": "stack"}
    write_report(tmp_path, cells[1], model=now)
    (row,) = collect(sheet_of(*cells), tmp_path).rows
    assert row.notes == ()


def test_times_of_runs_that_did_not_take_turns_are_refused(tmp_path: Path) -> None:
    timing = {"preprocessing": 1.0, "training": 2.0}
    sheet = Sheet("s", "A sheet", tuple(CELLS[:2]), turns=True)
    write_report(tmp_path, CELLS[0], timing=timing)
    assert collect(sheet, tmp_path).rows[0].seconds_per_run == 2.0
    write_report(tmp_path, CELLS[1])
    with pytest.raises(UserError, match="did not take turns"):
        collect(sheet, tmp_path)
