"""`check`: what is there, what differs, what is missing; nothing is downloaded."""

import pathlib
import shutil
import sys

import pytest
from real_data import ROOT, STORED, copy_files, need

from gind.datasets import DATASETS, DataError, check, load, on_disk
from gind.datasets.check import checksums


@pytest.fixture
def copy(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with MUTAG alone."""
    need("mutag")
    shutil.copytree(ROOT / "MUTAG", tmp_path / "MUTAG")
    return tmp_path


@pytest.mark.parametrize("name", ["texas", "mutag", "chameleon-filtered", "reed98"])
def test_what_is_as_it_should_be_is_said_to_be(name: str) -> None:
    need(name)
    report = check(name, ROOT)
    assert report.ok
    assert {file.state for file in report.files} == {"same"}
    assert [count.name for count in report.counts] == ["nodes", "edges", "features", "classes", "graphs"]
    assert report.defects == DATASETS[name].defects


def test_a_missing_file_ends_the_check(copy: pathlib.Path) -> None:
    (copy / "MUTAG/raw/MUTAG_A.txt").unlink()
    report = check("MUTAG", copy)
    assert not report.ok
    assert not report.complete
    assert [file.path for file in report.files if file.state == "missing"] == ["MUTAG/raw/MUTAG_A.txt"]
    assert report.counts == ()
    assert not on_disk("mutag", copy)


def test_other_bytes_of_equal_content_are_told_but_fine(copy: pathlib.Path) -> None:
    path = copy / "MUTAG/raw/MUTAG_A.txt"
    path.write_text(path.read_text().replace(", ", ","))
    report = check("mutag", copy)
    assert [file.path for file in report.files if file.state == "differs"] == ["MUTAG/raw/MUTAG_A.txt"]
    assert report.ok


def test_another_content_is_not_fine(copy: pathlib.Path) -> None:
    path = copy / "MUTAG/raw/MUTAG_A.txt"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[2:]))
    report = check("mutag", copy)
    assert not report.ok
    assert [count.name for count in report.counts if count.expected != count.measured] == ["edges"]


def test_what_cannot_be_read_is_reported_not_raised(copy: pathlib.Path) -> None:
    (copy / "MUTAG/raw/MUTAG_A.txt").write_text("not, numbers")
    report = check("mutag", copy)
    assert report.complete
    assert not report.ok
    assert report.problem is not None
    assert report.problem.startswith("mutag: the files under")


def test_what_needs_no_file_is_checked_too(tmp_path: pathlib.Path) -> None:
    report = check("karate", tmp_path)
    assert report.ok
    assert report.files == ()


def test_a_file_without_a_checksum_is_unknown(copy: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["gind.datasets.check"], "checksums", dict)
    assert {file.state for file in check("mutag", copy).files} == {"unknown"}


def test_checksums_are_of_files_of_the_table() -> None:
    known = {file.path for entry in DATASETS.values() for file in entry.files}
    assert set(checksums()) <= known
    without = {"ppi", "roman-empire", "amazon-ratings", "questions"}
    assert known - set(checksums()) == {file.path for name in without for file in DATASETS[name].files}
    assert all(len(digest) == 64 for digest in checksums().values())


def test_checksums_are_those_shipped_with_the_data() -> None:
    if not (ROOT / "SHA256SUMS").is_file():
        pytest.skip(f"there are no SHA256SUMS under {ROOT} (set GIND_DATA to a directory that holds them)")
    lines = (ROOT / "SHA256SUMS").read_text().splitlines()
    shipped = {path: digest for digest, path in (line.split(maxsplit=1) for line in lines)}
    assert checksums().items() <= shipped.items()
    assert any(on_disk(name, ROOT) for name in STORED)


def test_a_strange_pickle_is_not_opened(tmp_path: pathlib.Path) -> None:
    """Planetoid's files could run code when they are read."""
    copy_files("cora", tmp_path)
    mark = tmp_path / "it ran"
    (tmp_path / "Cora/geom-gcn/raw/ind.cora.x").write_bytes(
        b"cbuiltins\nexec\n(S'open(" + repr(str(mark)).encode() + b', "w")' + b"'\ntR."
    )
    with pytest.raises(DataError, match=r"ind\.cora\.x .* not opened"):
        load("cora", tmp_path)
    report = check("cora", tmp_path)
    assert report.problem is not None
    assert not report.ok
    assert not mark.exists()
