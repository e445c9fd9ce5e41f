"""Where files come from: the named directory, the cache, or a download into it; and no network."""

import hashlib
import io
import pathlib
import shutil
import time
import urllib.error
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from real_data import ROOT, need

import gind.datasets.download
from gind.datasets import DATASETS, DataError, load
from gind.datasets.check import checksums
from gind.datasets.download import locate

PATH = DATASETS["minesweeper"].files[0].path


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """No network, and an empty cache, whose path is returned."""

    def refuse(url: str, timeout: float) -> Any:
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setenv("GIND_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GIND_DATA", raising=False)
    return tmp_path / "cache"


def serve(monkeypatch: pytest.MonkeyPatch, content: dict[str, bytes], seconds: float = 0.0) -> list[str]:
    """Answers addresses by their last part, after some time; returns the list of what is asked for."""
    asked: list[str] = []

    def answer(url: str, timeout: float) -> Any:
        asked.append(url)
        time.sleep(seconds)
        return io.BytesIO(content[url.rpartition("/")[2]])

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    return asked


def test_the_environment_names_the_directory(monkeypatch: pytest.MonkeyPatch, offline: pathlib.Path) -> None:
    need("texas")
    monkeypatch.setenv("GIND_DATA", str(ROOT))
    assert load("Texas").num_features == 1703


def test_without_files_and_network_the_error_says_what_to_do(offline: pathlib.Path, tmp_path: pathlib.Path) -> None:
    expected = r"^texas: 12 of 12 files are not under .*: texas/raw/out1_node_feature_label.txt, .* and 9 more; and "
    expected += r"downloading failed \(URLError: .*no network.*\). Put them under .* `--data DIR` or set GIND_DATA.$"
    for root in (tmp_path, None):
        with pytest.raises(DataError, match=expected):
            load("texas", root)
    with pytest.raises(DataError, match=r"PTC_A.txt has no public address"):
        load("ptc", tmp_path)
    with pytest.raises(DataError, match=r"absent is not a directory. Correct `--data DIR`"):
        load("texas", tmp_path / "absent")


def test_missing_files_are_named(offline: pathlib.Path, tmp_path: pathlib.Path) -> None:
    need("mutag")
    shutil.copytree(ROOT / "MUTAG", tmp_path / "MUTAG")
    (tmp_path / "MUTAG/raw/MUTAG_A.txt").unlink()
    with pytest.raises(
        DataError, match=r"mutag: 1 of 4 files are not under .*: MUTAG/raw/MUTAG_A.txt; and downloading"
    ):
        load("mutag", tmp_path)


def minesweeper() -> bytes:
    """A file of that form."""
    content = io.BytesIO()
    masks = np.eye(4, dtype=bool)[:1].repeat(10, axis=0)
    parts: dict[str, Any] = {
        "train_masks": masks,
        "val_masks": np.roll(masks, 1, 1),
        "test_masks": np.roll(masks, 2, 1),
    }
    edges, labels = np.array([[0, 1], [1, 2]]), np.array([0, 1, 1, 0])
    np.savez(content, node_features=np.ones((4, 7)), node_labels=labels, edges=edges, **parts)
    return content.getvalue()


def known_as(monkeypatch: pytest.MonkeyPatch, **content: bytes) -> None:
    """Lets these be the published files of the datasets, each of a single file."""
    sums = {DATASETS[name].files[0].path: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    monkeypatch.setattr(gind.datasets.download, "checksums", lambda: sums)


def kept(cache: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock")


def test_a_download_is_kept_and_not_repeated(offline: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = serve(monkeypatch, {"minesweeper.npz": minesweeper()})
    known_as(monkeypatch, minesweeper=minesweeper())
    for _ in range(2):
        dataset = load("minesweeper")
    assert asked == [DATASETS["minesweeper"].files[0].url]
    assert [path.name for path in kept(offline)] == ["minesweeper.npz"]
    assert dataset.graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert dataset.graphs[0].x.dtype == torch.float32
    assert dataset.splits[9].val.tolist() == [1]


def test_what_is_not_the_published_file_is_not_kept(offline: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve(monkeypatch, {"minesweeper.npz": minesweeper()})
    got = hashlib.sha256(minesweeper()).hexdigest()
    expected = rf"^minesweeper: .*/minesweeper.npz gave a file of SHA-256 {got}, expected {checksums()[PATH]}. .* put "
    expected += rf"your own at DIR/{PATH} and pass `--data DIR` or set GIND_DATA.$"
    with pytest.raises(DataError, match=expected):
        load("minesweeper")
    assert not kept(offline)


def test_a_file_of_ones_own_may_differ(offline: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / PATH).parent.mkdir(parents=True)
    (tmp_path / PATH).write_bytes(minesweeper())
    assert load("minesweeper", tmp_path).graphs[0].num_nodes == 4


def test_at_the_same_time_it_is_downloaded_once(offline: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock holds between threads as between processes: each opens the file for itself."""
    asked = serve(monkeypatch, {"minesweeper.npz": minesweeper()}, seconds=0.2)
    known_as(monkeypatch, minesweeper=minesweeper())
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(locate, [DATASETS["minesweeper"]] * 3))
    assert found == [offline] * 3
    assert len(asked) == 1


def test_an_archive_is_unpacked_by_the_names_of_its_files(
    offline: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "A": "1, 2\n4, 3\n",
        "graph_indicator": "1\n1\n2\n2\n",
        "graph_labels": "1\n-1\n",
        "node_labels": "0\n1\n1\n1\n",
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for part, text in texts.items():
            archive.writestr(f"../elsewhere/MUTAG_{part}.txt", text)
    serve(monkeypatch, {"MUTAG.zip": content.getvalue()})
    dataset = load("mutag", folds=2)
    assert [data.x.tolist() for data in dataset.graphs] == [[[1, 0], [0, 1]], [[0, 1], [0, 1]]]
    assert {path.parent for path in kept(offline)} == {offline / "MUTAG/raw"}


def test_a_broken_download_leaves_nothing(offline: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise TimeoutError("timed out")

    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: Broken())
    with pytest.raises(DataError, match="TimeoutError: timed out"):
        load("minesweeper")
    assert not kept(offline)
    serve(monkeypatch, {"MUTAG.zip": b"not an archive"})
    with pytest.raises(DataError, match="BadZipFile"):
        load("mutag")
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    serve(monkeypatch, {"MUTAG.zip": empty.getvalue()})
    with pytest.raises(DataError, match=r"MUTAG.zip does not hold MUTAG_A.txt"):
        load("mutag")
    assert not kept(offline)


def test_a_connection_that_ends_early_leaves_nothing(monkeypatch: pytest.MonkeyPatch, offline: pathlib.Path) -> None:
    class Early(io.BytesIO):
        length = 999_000  # as of http.client: what is left to come

    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: Early(b"the beginning"))
    with pytest.raises(DataError, match="999000 more expected"):
        locate(DATASETS["roman-empire"], None)
    assert not list(offline.rglob("*.npz"))
