"""Datasets: names and files to graphs with features, labels and splits."""

from gind.datasets.check import CheckReport, CountCheck, FileCheck, check, on_disk
from gind.datasets.dataset import DataError, Dataset, Metric, Split, Task
from gind.datasets.entry import Counts, Entry, RawFile, SplitKind
from gind.datasets.load import load, row_normalize
from gind.datasets.splits import random_split, stratified_folds
from gind.datasets.statistics import Statistics, statistics
from gind.datasets.synthetic import chains
from gind.datasets.table import DATASETS, find

__all__ = [
    "DATASETS",
    "CheckReport",
    "CountCheck",
    "Counts",
    "DataError",
    "Dataset",
    "Entry",
    "FileCheck",
    "Metric",
    "RawFile",
    "Split",
    "SplitKind",
    "Statistics",
    "Task",
    "chains",
    "check",
    "find",
    "load",
    "on_disk",
    "random_split",
    "row_normalize",
    "statistics",
    "stratified_folds",
]
