"""`read_graph`: the user's own graph as a `Dataset`."""

import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from gind.datasets.dataset import DataError, Dataset, Split
from gind.datasets.files.delimited import read_delimited
from gind.datasets.files.edges import both_directions, edge_columns, edges_of
from gind.datasets.files.graphml import read_graphml
from gind.datasets.files.nodes import NodeColumns, features_of, ids_of, labels_of, splits_of
from gind.datasets.files.npz import read_npz_edges, read_npz_nodes
from gind.datasets.files.parquet import read_parquet
from gind.datasets.files.table import Place, Schema, Table, listing
from gind.datasets.splits import random_split

__all__ = ["is_graph_path", "read_graph"]

_FORMATS = (".csv", ".tsv", ".parquet", ".npz")


def is_graph_path(path: str | os.PathLike[str]) -> bool:
    """Whether `path` means files rather than the name of a dataset: it looks like a path, or holds a graph."""
    text = os.fspath(path)
    if text.endswith(".graphml") or any(mark in text for mark in (os.sep, os.altsep) if mark):
        return True
    directory = Path(path)
    return directory.is_dir() and bool(_tables(directory, "nodes") + _tables(directory, "edges") + _graphmls(directory))


def read_graph(
    path: str | os.PathLike[str],
    *,
    label: str = "label",
    split: str = "split",
    directed: bool | None = None,
    fractions: tuple[float, float, float] = (0.48, 0.32, 0.2),
    seed: int = 0,
    num_random: int = 10,
    require_labels: bool = True,
) -> Dataset:
    """The graph of a directory with `nodes` and `edges` (csv, tsv, parquet or npz each), or of a GraphML file.

    nodes  `id`, the columns `label` and `split` (also `split0`, `split1`, ...), all others are features
    edges  `source` and `target` (or src, dst; from, to) with ids, and maybe `weight`

    Edges keep the order and the direction of the file; `directed=False` adds the missing reverse ones, as None does
    for a GraphML file that says it is undirected. Without a split column there are `num_random` random splits of the
    labelled nodes. `require_labels=False` is for prediction: labels may be missing, and there are no splits.
    """
    columns = NodeColumns(label, split, require_labels)
    nodes, edges, file_directed = _read(Path(path), columns)
    ids = ids_of(nodes)
    y, classes = labels_of(nodes, columns)
    data = Data(x=features_of(nodes), y=y)
    data.edge_index, weight = _edges(edges, ids, both=not (file_directed if directed is None else directed))
    if weight is not None:
        data.edge_weight = weight
    splits: tuple[Split, ...] = ()
    if require_labels:
        # (seed, number): the splits of neighboring seeds are all different
        seeds = [(seed, number) for number in range(num_random)]
        splits = splits_of(nodes, columns, y) or _random_splits(nodes.place, y, fractions, seeds)
    whole = Path(path).resolve()
    name = whole.name if whole.is_dir() else whole.stem
    return Dataset(name, "node", "accuracy", (data,), classes, splits, tuple(ids), tuple(nodes.names))


def _read(path: Path, columns: NodeColumns) -> tuple[Table, Table, bool]:
    """The tables of nodes and of edges, and whether the edges are directed."""
    try:
        file = _graphml_of(path)
        if file is not None:
            content = read_graphml(file, columns, edge_columns)
            return content.nodes, content.edges, content.directed
        nodes, edges = _table_of(path, "nodes"), _table_of(path, "edges")
        if nodes.suffix == ".npz":
            node_table = read_npz_nodes(nodes, columns.label, columns.split)
        else:
            node_table = _read_columns(nodes, columns)
        edge_table = read_npz_edges(edges) if edges.suffix == ".npz" else _read_columns(edges, edge_columns)
        return node_table, edge_table, True
    except OSError as error:
        raise DataError(f"{error.filename or path}: it cannot be read ({error.strerror or error}).") from None


def _read_columns(path: Path, schema: Schema) -> Table:
    return read_parquet(path, schema) if path.suffix == ".parquet" else read_delimited(path, schema)


def _edges(table: Table, ids: dict[str, int], *, both: bool) -> tuple[Tensor, Tensor | None]:
    edge_index, weight = edges_of(table, ids)
    return both_directions(edge_index, weight, len(ids)) if both else (edge_index, weight)


def _tables(directory: Path, stem: str) -> list[Path]:
    return [file for suffix in _FORMATS if (file := directory / (stem + suffix)).is_file()]


def _graphmls(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.graphml"))


def _graphml_of(path: Path) -> Path | None:
    """The GraphML file that `path` means, None where it means tables."""
    if not path.exists():
        raise DataError(f"{path}: there is no such file or directory.")
    if not path.is_dir():
        if path.suffix != ".graphml":
            raise DataError(f"{path}: expected a GraphML file, or the directory that holds nodes and edges.")
        return path
    files = _graphmls(path)
    if len(files) > 1 or (files and _tables(path, "nodes") + _tables(path, "edges")):
        found = [*files, *_tables(path, "nodes"), *_tables(path, "edges")]
        raise DataError(f"{path}: several graphs, {listing(file.name for file in found)}. Keep one of them.")
    return files[0] if files else None


def _table_of(directory: Path, stem: str) -> Path:
    found = _tables(directory, stem)
    if len(found) > 1:
        raise DataError(f"{directory}: {listing(file.name for file in found)} are ambiguous. Keep one of them.")
    if not found:
        wanted = ", ".join(stem + suffix for suffix in _FORMATS)
        present = listing(sorted(file.name for file in directory.iterdir()))
        raise DataError(f"{directory}: expected one of {wanted} (or one *.graphml), found {present}.")
    return found[0]


def _random_splits(
    place: Place, y: Tensor, fractions: Sequence[float], seeds: Sequence[tuple[int, int]]
) -> tuple[Split, ...]:
    if not seeds:
        raise ValueError("`num_random` must be at least 1: the nodes have no column with a split.")
    splits = tuple(random_split(y, fractions, seed) for seed in seeds)
    for split in splits:
        for part in ("train", "val", "test"):
            if not len(getattr(split, part)):
                count = int(torch.count_nonzero(y >= 0))
                raise place.error(f"{count} labelled nodes are too few for a random split: {part!r} is empty.")
    return splits
