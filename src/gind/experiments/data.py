"""Data of a run: a name of the table or a path of one's own, prepared as asked."""

import dataclasses
import re
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from gind.datasets import DataError, Dataset, find, load, row_normalize
from gind.datasets.download import locate
from gind.datasets.files import is_graph_path, read_graph
from gind.features import choose_layout

__all__ = ["DataOptions", "dataset_name", "file_stem", "find_data", "load_data", "loading_options", "prepare"]


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """How the data is prepared and shared out; None is the dataset's own way."""

    features: Literal["raw", "row", "standard"] | None = None
    """raw, rows that sum to 1, or columns of mean 0 and deviation 1 (own graphs with dense features: standard)"""
    precision: Literal["single", "double"] | None = None
    """of the features and the model (single: 32 bit); long range with strong K needs double"""
    splits: Literal["published", "random", "kfold"] | None = None
    """which splits `split` counts"""
    protocol: Literal["honest", "paper"] = "honest"
    """of graph classification; "paper" looks at test labels after every epoch (protocol.py)"""
    fractions: tuple[int | float, int | float, int | float] | None = None
    """train, validation and test share of random splits; whole numbers are numbers of nodes"""
    folds: int | None = None
    """of kfold splits"""
    length: int | None = None
    """of chains"""
    classes: int | None = None
    """of chains"""
    neighbors: int | None = None
    """of nearest neighbor graphs"""
    attributes: bool | None = None
    """of TU graphs: node attributes beside node labels"""
    label: str | None = None
    """the column of the label in one's own files"""


def dataset_name(dataset: str) -> str:
    """The name under which defaults are kept: of the table, or "" for a path."""
    return "" if is_graph_path(dataset) else find(dataset).name


def file_stem(dataset: str) -> str:
    """What files about a dataset are named by: its name, or the last part of its path."""
    path = "/" in dataset or "\\" in dataset or dataset in (".", "..")
    return re.sub(r"[^\w.-]+", "-", Path(dataset).resolve().name if path else dataset).lower()


def load_data(dataset: str, root: str | Path | None, options: DataOptions, *, require_labels: bool = True) -> Dataset:
    """The dataset of a name or a path, features as the source has them."""
    given = loading_options(dataset, options)
    if is_graph_path(dataset):
        loaded = read_graph(dataset, require_labels=require_labels, **given)
    else:
        loaded = load(dataset, root, **given)
    if options.features == "row":
        for graph in loaded.graphs:
            graph.x = row_normalize(graph.x)
    return loaded


def loading_options(dataset: str, options: DataOptions) -> dict[str, Any]:
    """What is said of how to load it; refused for a graph of one's own where it does not apply."""
    later = ("features", "precision", "protocol")
    given = {name: value for name, value in vars(options).items() if value is not None and name not in later}
    if is_graph_path(dataset):
        for name in given:
            if name not in ("fractions", "label"):
                raise DataError(f"{name} does not apply to a graph of one's own files.")
    return given


def find_data(dataset: str, root: str | Path | None) -> None:
    """See to it that the files of a dataset are on disk, by a download where it must be; refused where they cannot."""
    if is_graph_path(dataset):
        if not Path(dataset).exists():
            raise DataError(f"There is no graph at {dataset}. Correct the path; it is looked for from where you are.")
    elif (entry := find(dataset)).files:
        locate(entry, root)


def prepare(
    dataset: Dataset, options: DataOptions, statistics: dict[str, Tensor] | None = None
) -> tuple[Dataset, dict[str, Tensor]]:
    """Features scaled and in the layout that is fastest; with the mean and scale used, to be used again elsewhere."""
    used = dict(statistics or {})
    graphs = []
    if statistics is None and _standardizes(dataset, options):
        used = _statistics(dataset)
    for graph in dataset.graphs:
        x = graph.x
        if used:
            x = (_dense(x) - used["mean"]) / used["scale"]
        if options.precision == "double":
            x = x.double()
        changed = graph.clone() if x is not graph.x else graph
        changed.x = choose_layout(x)
        graphs.append(changed)
    return dataclasses.replace(dataset, graphs=tuple(graphs)), used


def _standardizes(dataset: Dataset, options: DataOptions) -> bool:
    if options.features is not None:
        return options.features == "standard"
    return dataset.node_ids is not None and dataset.graphs[0].x.layout == torch.strided


def _statistics(dataset: Dataset) -> dict[str, Tensor]:
    x = torch.cat([_dense(graph.x) for graph in dataset.graphs]).double()
    deviation = x.std(dim=0, unbiased=False)
    scale = torch.where(deviation > 0, deviation, 1.0)
    return {"mean": x.mean(dim=0).float(), "scale": scale.float()}


def _dense(x: Tensor) -> Tensor:
    dense: Tensor = x if x.layout == torch.strided else x.to_dense()
    return dense
