"""Readers, one per source: raw files → graphs, names of classes and published splits; the files are only read."""

import contextlib
import dataclasses
import io
import pathlib
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch_geometric import datasets
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

from gind.datasets.dataset import DataError, Split
from gind.datasets.embedded import embedded
from gind.datasets.entry import Entry
from gind.datasets.ppi import read_ppi
from gind.datasets.splits import from_masks
from gind.datasets.synthetic import chains
from gind.features import compact

__all__ = ["Opened", "read"]


@dataclasses.dataclass(frozen=True, eq=False)
class Opened:
    """What a source gives: graphs, names of classes, and its published splits if it has any."""

    graphs: tuple[Data, ...]
    classes: tuple[str, ...]
    splits: tuple[Split, ...] = ()


def read(entry: Entry, base: pathlib.Path | None, options: Mapping[str, Any]) -> Opened:
    """The set of `entry` from the files under `base` (None if it needs none)."""
    if base is None:
        return _without_files(entry, options)
    try:
        return _READERS[entry.source](entry, base) if entry.source in _READERS else _pyg(entry, base, options)
    except (DataError, MemoryError):
        raise
    except Exception as error:
        # a damaged file fails in as many ways as there are parsers
        raise DataError(
            f"{entry.name}: the files under {base} cannot be read ({type(error).__name__}: {error}). Is one "
            f"damaged, or of another format? `gind.datasets.check({entry.name!r}, root)` compares their checksums."
        ) from error


def _without_files(entry: Entry, options: Mapping[str, Any]) -> Opened:
    if entry.source == "chains":
        return Opened((chains(**options),), _numbers(options["classes"]))
    data, classes = embedded(entry.name, **options)
    return Opened((data,), classes)


def _pyg(entry: Entry, base: pathlib.Path, options: Mapping[str, Any]) -> Opened:
    """A set that a class of PyG reads."""
    with _view(entry, base) as folder, contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        # PyG's readers warn of their own use of pickle and numpy, which our caller cannot change
        warnings.simplefilter("ignore")
        opened = list(_open(entry, str(folder), options))
    graphs = tuple(_plain(data, words=entry.words) for data in opened)
    splits: tuple[Split, ...] = ()
    if "train_mask" in opened[0]:
        splits = from_masks(opened[0].train_mask, opened[0].val_mask, opened[0].test_mask)
    return Opened(graphs, _numbers(1 + max(int(data.y.max()) for data in graphs)), splits)


def _open(entry: Entry, folder: str, options: Mapping[str, Any]) -> Any:
    """PyG's dataset, an iterable of `Data`."""
    stem = entry.files[0].path.partition("/")[0]
    match entry.source:
        case "planetoid":
            return datasets.Planetoid(folder, stem, split="geom-gcn")
        case "actor":
            return datasets.Actor(f"{folder}/{stem}")
        case "tu":
            return datasets.TUDataset(folder, stem, use_node_attr=bool(options.get("attributes", False)))
    raise AssertionError(f"no reader of {entry.source}")


@contextlib.contextmanager
def _view(entry: Entry, base: pathlib.Path) -> Iterator[pathlib.Path]:
    """A temporary directory that looks like `base` with the files of `entry`: PyG writes `processed/` into it."""
    with tempfile.TemporaryDirectory(prefix="gind-") as name:
        folder = pathlib.Path(name)
        for file in entry.files:
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.symlink_to((base / file.path).resolve())
            except (OSError, NotImplementedError):  # a system without links, or without the right to make them
                shutil.copyfile(base / file.path, target)
        yield folder


def _plain(data: Data, *, words: bool = False) -> Data:
    """Features, edges and labels alone, cloned: a slice of PyG's storage would drag all graphs along when saved."""
    x = torch.ones(data.num_nodes, 1) if data.x is None else data.x
    return Data(x=compact(x, words=words).clone(), edge_index=data.edge_index.clone(), y=data.y.clone())


def _platonov(entry: Entry, base: pathlib.Path) -> Opened:
    keys = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")
    x, y, edges, *masks = (torch.from_numpy(array) for array in _arrays(base / entry.files[0].path, keys))
    edge_index, y = edges.t().contiguous().long(), y.long()
    if not entry.directed:
        edge_index = to_undirected(edge_index, num_nodes=len(x))
    data = Data(x=compact(x, words=entry.words), edge_index=edge_index, y=y)
    return Opened((data,), _numbers(int(y.max()) + 1), from_masks(*(mask.t() for mask in masks)))


def _benchmark(entry: Entry, base: pathlib.Path) -> Opened:
    """As PyG reads it, but never dense: 1.2 GB of mostly zeros for physics."""
    keys = [f"{part}_{piece}" for part in ("attr", "adj") for piece in ("data", "indices", "indptr", "shape")]
    *arrays, labels = _arrays(base / entry.files[0].path, (*keys, "labels"))
    words, adjacency = (
        scipy.sparse.csr_matrix(tuple(part[:3]), shape=tuple(part[3])) for part in (arrays[:4], arrays[4:])
    )
    words.data = np.where(words.data > 0, 1, words.data).astype(np.float32)
    words.eliminate_zeros()
    words.sort_indices()
    edge_index = torch.from_numpy(np.stack(adjacency.nonzero())).long()
    edge_index = to_undirected(remove_self_loops(edge_index)[0], num_nodes=len(labels))
    y = torch.from_numpy(labels).long()
    data = Data(x=compact(words, words=entry.words), edge_index=edge_index, y=y)
    return Opened((data,), _numbers(int(y.max()) + 1))


def _geom_gcn(entry: Entry, base: pathlib.Path) -> Opened:
    """As PyG's `WebKB` and `WikipediaNetwork` read it, but ten times as fast."""
    nodes, edges, *splits = (base / file.path for file in entry.files)
    lines = [line.split("\t") for line in nodes.read_text().splitlines()[1:]]
    x = torch.from_numpy(np.stack([_bits(line[1]) for line in lines]))
    y = torch.tensor([int(line[2]) for line in lines])
    edge_index = torch.from_numpy(np.loadtxt(edges, dtype=np.int64, skiprows=1).T.copy())
    data = Data(x=compact(x, words=entry.words), edge_index=coalesce(edge_index, num_nodes=len(x)), y=y)
    masks = [_arrays(path, ("train_mask", "val_mask", "test_mask")) for path in splits]
    columns = (torch.from_numpy(np.stack(part, axis=1)) for part in zip(*masks, strict=True))
    return Opened((data,), _numbers(int(y.max()) + 1), from_masks(*columns))


def _bits(text: str) -> NDArray[np.uint8]:
    """The numbers of "0,1,0", taken from every second byte: parsing ten million numbers takes seconds."""
    raw = np.frombuffer(text.encode(), dtype=np.uint8)
    bits = raw[::2] - ord("0")
    if not bits.max(initial=0) <= 1 or not (raw[1::2] == ord(",")).all():
        raise DataError(f"Expected features of 0 and 1 with commas between, got {text[:40]!r}. Is it another file?")
    return bits


def _facebook(entry: Entry, base: pathlib.Path) -> Opened:
    """As PyG's `LINKXDataset` reads it, but never dense: each field of a profile is one-hot."""
    content = scipy.io.loadmat(base / entry.files[0].path)
    profile = content["local_info"].astype(np.int64)
    fields = np.delete(profile, 1, axis=1)
    values = [np.unique(field, return_inverse=True) for field in fields.T]
    first = np.cumsum([0] + [len(known) for known, _ in values])
    columns = np.stack([code + start for (_, code), start in zip(values, first[:-1], strict=True)], axis=1)
    words = scipy.sparse.csr_matrix(
        (np.ones(columns.size), columns.flatten(), np.arange(0, columns.size + 1, columns.shape[1])),
        shape=(len(profile), first[-1]),
    )
    edge_index = torch.from_numpy(np.stack(content["A"].tocsr().nonzero())).long()
    # gender: 1 or 2, 0 if not told
    y = torch.from_numpy(profile[:, 1] - 1)
    return Opened((Data(x=compact(words, words=entry.words), edge_index=edge_index, y=y),), _numbers(int(y.max()) + 1))


def _ppi(entry: Entry, base: pathlib.Path) -> Opened:
    graphs, split = read_ppi((base / entry.files[0].path).parent)
    return Opened(graphs, _numbers(graphs[0].y.shape[1]), (split,))


def _arrays(path: pathlib.Path, keys: Iterable[str]) -> list[Any]:
    """The arrays of an npz; nothing in it is allowed to run code."""
    with np.load(path, allow_pickle=False) as content:
        if absent := [key for key in keys if key not in content]:
            raise DataError(f"{path} lacks {', '.join(absent)}; it has {', '.join(content)}. Is it another file?")
        return [content[key] for key in keys]


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(count))


_READERS = {
    "geom-gcn": _geom_gcn,
    "platonov": _platonov,
    "benchmark": _benchmark,
    "facebook": _facebook,
    "ppi": _ppi,
}
