"""`load`: every set on disk is what the table and the README of the data say, and its directory is only read."""

import os
import pathlib
from typing import Any

import numpy as np
import pytest
import torch
from real_data import GENERATED, ROOT, STORED, copy_files, need, real
from torch_geometric import datasets
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures

from gind.datasets import DATASETS, DataError, Dataset, load, row_normalize
from gind.datasets.sources import _plain
from gind.features import compact

# train, validation and test of each of the ten published splits, where all ten are alike
SIZES = {
    "cora": (1192, 796, 497),
    "pubmed": (9463, 6310, 3944),
    "cornell": (87, 59, 37),
    "cornell-pre2022": (87, 59, 37),
    "texas": (87, 59, 37),
    "wisconsin": (120, 80, 51),
    "chameleon": (1092, 729, 456),
    "squirrel": (2496, 1664, 1041),
    "actor": (3648, 2432, 1520),
    "minesweeper": (5000, 2500, 2500),
    "tolokers": (5879, 2939, 2940),
}


def sizes(dataset: Dataset) -> list[tuple[int, int, int]]:
    return [(len(split.train), len(split.val), len(split.test)) for split in dataset.splits]


def listing(folder: pathlib.Path) -> dict[pathlib.Path, tuple[int, int]]:
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


@pytest.mark.parametrize("name", [*STORED, *GENERATED])
def test_every_set_keeps_the_contract(name: str) -> None:
    dataset, entry = real(name), DATASETS[name]
    assert (dataset.name, dataset.task, dataset.metric) == (name, entry.task, entry.metric)
    assert len(dataset.splits) == (1 if name == "ppi" else 10)
    whole = sum(len(data.y) for data in dataset.graphs)
    for data in dataset.graphs[:20]:
        assert sorted(data.keys()) == ["edge_index", "x", "y"]
        assert data.x.dtype == torch.float32
        assert data.x.layout in (torch.strided, torch.sparse_csr)
        assert data.edge_index.dtype == data.y.dtype == torch.long
        assert 0 <= int(data.edge_index.min()) <= int(data.edge_index.max()) < data.x.shape[0]
        assert -1 <= int(data.y.min()) <= int(data.y.max()) < dataset.num_classes
    y = torch.cat([data.y for data in dataset.graphs])
    for split in dataset.splits:  # that they are disjoint, `Split` has checked
        used = torch.cat([split.train, split.val, split.test])
        assert 0 <= int(used.min()) <= int(used.max()) < whole
        assert int(y[used].min()) >= 0
        assert min(len(split.train), len(split.val), len(split.test)) > 0


@pytest.mark.parametrize("name", SIZES)
def test_published_splits_have_their_sizes(name: str) -> None:
    assert sizes(real(name)) == [SIZES[name]] * 10


def test_splits_of_citeseer_and_the_filtered_sets_differ() -> None:
    small, full = (1017, 679, 424), (1596, 1065, 666)
    assert sizes(real("citeseer")) == [small if i in (4, 5) else full for i in range(10)]
    assert sizes(real("chameleon-filtered"))[:3] == [(409, 287, 194), (427, 302, 161), (422, 290, 178)]
    assert all(sum(size) == 2223 for size in sizes(real("squirrel-filtered")))


def test_the_single_node_of_a_class_of_texas_is_not_trained_on_in_four_splits() -> None:
    dataset = real("texas")
    lone = int(torch.nonzero(dataset.graphs[0].y == 1))
    assert [i for i, split in enumerate(dataset.splits) if lone not in split.train] == [0, 1, 2, 7]


def test_the_old_cornell_is_texas_on_the_edges_of_cornell() -> None:
    old, texas, new = (real(name).graphs[0] for name in ("cornell-pre2022", "texas", "cornell"))
    assert torch.equal(old.x.to_dense(), texas.x.to_dense())
    assert torch.equal(old.y, texas.y)
    assert not torch.equal(old.y, new.y)
    links = [set(map(tuple, data.edge_index.T.tolist())) for data in (old, texas)]
    assert (len(links[0]), len(links[0] & links[1])) == (298, 3)
    degrees = [torch.stack([torch.bincount(ends, minlength=183) for ends in data.edge_index]) for data in (old, new)]
    # nodes are in another order
    assert sorted(degrees[0].T.tolist()) == sorted(degrees[1].T.tolist())


@pytest.mark.parametrize("name", [name for name, entry in DATASETS.items() if entry.directed])
def test_directed_sets_stay_directed_and_the_others_are_symmetric(name: str) -> None:
    undirected = {
        "chameleon-filtered-directed": "chameleon-filtered",
        "squirrel-filtered-directed": "squirrel-filtered",
    }
    for kept, one_way in ((name, True), (undirected.get(name, "cora"), False)):
        edges = set(zip(*real(kept).graphs[0].edge_index.tolist(), strict=True))
        assert (edges != {(b, a) for a, b in edges}) == one_way


def test_bags_of_words_are_sparse_when_few_words_are_used() -> None:
    sparse = {name for name in STORED if DATASETS[name].words} - {"computers", "photo"}
    for name in sorted(sparse):
        assert real(name).graphs[0].x.layout == torch.sparse_csr
    # a third of the words are used: sparse would be larger than dense
    for name in ("computers", "photo", "minesweeper", "tolokers", "nci1"):
        assert real(name).graphs[0].x.layout == torch.strided


@pytest.mark.parametrize(
    ("name", "opened"),
    [
        ("citeseer", lambda root: datasets.Planetoid(root, "CiteSeer", split="geom-gcn")),
        ("wisconsin", lambda root: datasets.WebKB(root, "wisconsin")),
        ("minesweeper", lambda root: datasets.HeterophilousGraphDataset(root, "minesweeper")),
        ("photo", lambda root: datasets.Amazon(root, "Photo")),
        ("reed98", lambda root: datasets.LINKXDataset(root, "reed98")),
    ],
)
def test_graphs_are_those_of_pyg(name: str, opened: Any, tmp_path: pathlib.Path) -> None:
    ours = real(name).graphs[0]
    copy_files(name, tmp_path)
    theirs = opened(str(tmp_path))[0]
    assert torch.equal(ours.x.to_dense(), theirs.x)
    assert torch.equal(ours.edge_index, theirs.edge_index)
    assert torch.equal(ours.y, theirs.y)
    rows = row_normalize(ours.x)
    assert rows.layout == ours.x.layout
    torch.testing.assert_close(rows.to_dense(), NormalizeFeatures()(theirs.clone()).x)


def test_coauthors_are_never_dense_and_equal_to_their_file() -> None:
    x = real("cs").graphs[0].x
    with np.load(ROOT / DATASETS["cs"].files[0].path) as content:
        assert x.values().numel() == int((content["attr_data"] > 0).sum())
        start, end = content["attr_indptr"][5:7]
        assert sorted(content["attr_indices"][start:end]) == x[5].to_dense().nonzero().flatten().tolist()
    assert set(x.values().tolist()) == {1.0}


def test_rows_sum_to_one_on_request() -> None:
    need("texas")
    x = load("texas", ROOT, features="row").graphs[0].x
    assert x.layout == torch.sparse_csr
    torch.testing.assert_close(x.to_dense().sum(1), torch.ones(183))
    assert set(real("texas").graphs[0].x.values().tolist()) == {1.0}


def test_rows_of_zeros_stay_and_rows_below_zero_are_refused() -> None:
    x = torch.tensor([[0.0, 0.0], [1.0, 3.0]])
    for layout in (x, x.to_sparse_csr()):
        assert row_normalize(layout).to_dense().tolist() == [[0, 0], [0.25, 0.75]]
    with pytest.raises(DataError, match="below 0"):
        row_normalize((-x).to_sparse_csr())


def test_attributes_are_an_option() -> None:
    need("cox2")
    with_attributes = load("cox2", ROOT, attributes=True)
    assert (with_attributes.num_features, real("cox2").num_features) == (38, 35)
    assert torch.equal(with_attributes.graphs[3].x[:, 3:], real("cox2").graphs[3].x)


def test_graphs_without_features_get_a_constant() -> None:
    bare = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0]), num_nodes=3)
    assert _plain(bare).x.tolist() == [[1], [1], [1]]


def test_only_words_are_made_sparse() -> None:
    x = torch.eye(10)
    assert compact(x, words=False).layout == torch.strided
    assert compact(x, words=True).layout == torch.sparse_csr
    assert compact(torch.ones(3, 3, dtype=torch.long), words=True).dtype == torch.float32


@pytest.mark.parametrize("name", ["wisconsin", "mutag", "reed98", "chameleon-filtered"])
def test_the_directory_is_only_read(name: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    need(name)
    copy_files(name, tmp_path)
    before, temporary = listing(tmp_path), set(pathlib.Path(os.environ.get("TMPDIR", "/tmp")).glob("gind-*"))
    load(name, tmp_path)
    assert listing(tmp_path) == before
    assert set(pathlib.Path(os.environ.get("TMPDIR", "/tmp")).glob("gind-*")) <= temporary
    assert capsys.readouterr() == ("", "")


def test_a_system_without_links_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    need("texas")
    monkeypatch.setattr(pathlib.Path, "symlink_to", refuse)
    assert torch.equal(load("texas", ROOT).graphs[0].y, real("texas").graphs[0].y)


def test_random_splits_and_folds_replace_the_published_on_request() -> None:
    need("texas")
    random = load("texas", ROOT, splits="random", num_random=2, seed=3)
    assert sizes(random) == [(88, 58, 37)] * 2
    assert not torch.equal(random.splits[0].test, random.splits[1].test)
    assert torch.equal(load("texas", ROOT, splits="random", seed=3).splits[1].test, random.splits[1].test)
    folds = load("texas", ROOT, splits="kfold", folds=5)
    assert torch.equal(torch.cat([split.test for split in folds.splits]).sort().values, torch.arange(183))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wine", {"splits": "published"}, "wine has no published splits. Use `splits='random'`"),
        ("wine", {"splits": "randon"}, r"no splits 'randon'. Did you mean 'random'\?"),
        ("wine", {"neighbours": 3}, r"wine has no option 'neighbours'. Did you mean 'neighbors'\?"),
        ("wine", {"features": "column"}, "`features` must be 'raw' or 'row', got 'column'"),
        ("wine", {"num_random": 0}, "`num_random`.* must be >= 1, got 0"),
        ("crom", {}, "no dataset 'crom'"),
    ],
)
def test_what_is_not_there_is_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load(name, **options)


def test_features_other_than_words_are_refused(tmp_path: pathlib.Path) -> None:
    for file in DATASETS["texas"].files:
        (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file.path).write_text("node_id\tfeature\tlabel\n0\t0,1,0\t3\n1\t0.5,1\t2\n")
    with pytest.raises(DataError, match=r"Expected features of 0 and 1 with commas between, got '0.5,1'"):
        load("texas", tmp_path)


def test_a_damaged_file_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / DATASETS["minesweeper"].files[0].path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"damaged")
    with pytest.raises(
        DataError, match=r"minesweeper: the files under .* cannot be read \(.*check\('minesweeper', root"
    ):
        load("minesweeper", tmp_path)
    np.savez(path, edges=np.zeros((1, 2)))
    with pytest.raises(DataError, match=r"lacks node_features, node_labels, .*; it has edges"):
        load("minesweeper", tmp_path)
    np.savez(path, node_features=np.array([{"code": 1}]))
    with pytest.raises(DataError, match="lacks node_labels"):
        load("minesweeper", tmp_path)
