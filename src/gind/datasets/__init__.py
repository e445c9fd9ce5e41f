"""Datasets: names and files to graphs with features, labels and splits."""

from gind.datasets.dataset import DataError, Dataset, Metric, Split, Task

__all__ = ["DataError", "Dataset", "Metric", "Split", "Task"]
