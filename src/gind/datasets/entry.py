"""`Entry`: what the table says of one dataset, and one function per source that writes its entries.

Imports no torch, so that a command line can list names and files at once.
"""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

__all__ = [
    "Counts",
    "Entry",
    "RawFile",
    "SplitKind",
    "benchmark",
    "facebook",
    "geom_gcn",
    "neighbors",
    "planetoid",
    "platonov",
    "ppi",
    "tu",
]

SplitKind = Literal["published", "random", "kfold"]

# the addresses that PyG's classes download from (a test compares them)
GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master"
# a commit before July 2022, when Cornell was corrected; PyG takes the Wikipedia networks from it too
GEOM_GCN_OLD = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
PLATONOV = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
BENCHMARK = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
FACEBOOK = "https://github.com/CUAI/Non-Homophily-Large-Scale/raw/master/data/facebook100"
TU = "https://www.chrsmrrs.com/graphkerneldatasets"
PPI = "https://data.dgl.ai/dataset/ppi.zip"


@dataclasses.dataclass(frozen=True)
class RawFile:
    """A file under the data directory, and the address it comes from ("" if it has none; a .zip may hold several)."""

    path: str
    url: str


@dataclasses.dataclass(frozen=True)
class Counts:
    """What a set must contain, over all its graphs; edges are columns of `edge_index`."""

    nodes: int
    edges: int
    features: int
    classes: int
    graphs: int = 1


@dataclasses.dataclass(frozen=True)
class Entry:
    """One dataset: `source` says how its files are read, `words` that its features are a bag of words."""

    name: str
    source: str
    counts: Counts
    files: tuple[RawFile, ...] = ()
    task: Literal["node", "graph", "multilabel"] = "node"
    metric: Literal["accuracy", "roc_auc", "micro_f1"] = "accuracy"
    splits: SplitKind = "published"
    """what `load` gives when it is not told"""
    directed: bool = False
    words: bool = False
    fractions: tuple[float, float, float] = (0.48, 0.32, 0.2)
    """train, validation and test shares of random splits, when `load` is not told"""
    stratify: bool = True
    options: Mapping[str, object] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    """what may be passed to `load` for this set alone, with its default"""
    defects: tuple[str, ...] = ()


def _published(folder: str, stem: str, base: str) -> tuple[RawFile, ...]:
    names = [f"{stem}_split_0.6_0.2_{i}.npz" for i in range(10)]
    return tuple(RawFile(f"{folder}/{name}", f"{base}/splits/{name}") for name in names)


def planetoid(folder: str, counts: Counts, *defects: str) -> Entry:
    """A citation network with the ten splits of Geom-GCN."""
    name, raw = folder.lower(), f"{folder}/geom-gcn/raw"
    parts = [f"ind.{name}.{part}" for part in ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")]
    files = tuple(RawFile(f"{raw}/{part}", f"{PLANETOID}/{part}") for part in parts)
    return Entry(name, "planetoid", counts, files + _published(raw, name, GEOM_GCN), words=True, defects=defects)


def geom_gcn(name: str, source: str, raw: str, counts: Counts, *defects: str, base: str = GEOM_GCN) -> Entry:
    """A directed network in Geom-GCN's text format, in the folder `raw`."""
    stem = {"actor": "film", "cornell-pre2022": "cornell"}.get(name, name)
    parts = ("out1_node_feature_label.txt", "out1_graph_edges.txt")
    files = tuple(RawFile(f"{raw}/{part}", f"{base}/new_data/{stem}/{part}") for part in parts)
    files += _published(raw, stem, base)
    return Entry(name, source, counts, files, directed=True, words=True, defects=defects)


def platonov(name: str, counts: Counts, *, words: bool = False, metric: Literal["accuracy", "roc_auc"]) -> Entry:
    """A heterophilous graph of Platonov et al. (2023): one npz with ten splits."""
    stem = name.replace("-", "_")
    files = (RawFile(f"{stem}/raw/{stem}.npz", f"{PLATONOV}/{stem}.npz"),)
    return Entry(name, "platonov", counts, files, metric=metric, directed=name.endswith("-directed"), words=words)


def benchmark(folder: str, file: str, counts: Counts) -> Entry:
    """A co-purchase or co-author graph of Shchur et al. (2018): one npz, no splits."""
    files = (RawFile(f"{folder}/raw/{file}", f"{BENCHMARK}/{file}"),)
    defects = ("Word counts become 0 and 1 on reading, as with PyG.",)
    return Entry(folder.lower(), "benchmark", counts, files, splits="random", words=True, defects=defects)


def facebook(name: str, file: str, unlabelled: int, counts: Counts) -> Entry:
    """A university of Facebook100: one mat file, no splits."""
    files = (RawFile(f"{name}/raw/data.mat", f"{FACEBOOK}/{file}.mat"),)
    defects = (f"The label is gender; {unlabelled} of {counts.nodes} nodes are unlabelled (-1) and in no split.",)
    return Entry(name, "facebook", counts, files, splits="random", words=True, defects=defects)


def tu(folder: str, counts: Counts, *defects: str, attributes: bool = False, url: str | None = None) -> Entry:
    """A set of graphs in the TU text format; `attributes` says that nodes have real attributes beside a label."""
    parts = ["A", "graph_indicator", "graph_labels", "node_labels"] + ["node_attributes"] * attributes
    address = f"{TU}/{folder}.zip" if url is None else url
    files = tuple(RawFile(f"{folder}/raw/{folder}_{part}.txt", address) for part in parts)
    options = MappingProxyType({"attributes": False} if attributes else {})
    name = folder.lower()
    return Entry(name, "tu", counts, files, task="graph", splits="kfold", options=options, defects=defects)


def ppi(counts: Counts) -> Entry:
    """GraphSAGE's protein interactions: 20 graphs to train, 2 to validate, 2 to test."""
    parts = [f"{part}_{kind}" for part in ("train", "valid", "test") for kind in ("feats.npy", "labels.npy")]
    parts += [f"{part}_{kind}" for part in ("train", "valid", "test") for kind in ("graph.json", "graph_id.npy")]
    files = tuple(RawFile(f"ppi/raw/{part}", PPI) for part in parts)
    return Entry("ppi", "ppi", counts, files, task="multilabel", metric="micro_f1")


def neighbors(name: str, counts: Counts) -> Entry:
    """A table of scikit-learn, made a graph of nearest neighbors."""
    defects = ("The graph is made from the features (nearest neighbors): it adds no information of its own.",)
    options = MappingProxyType({"neighbors": 10})
    return Entry(name, "embedded", counts, splits="random", options=options, defects=defects)
