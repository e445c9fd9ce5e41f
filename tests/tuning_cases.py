"""What the tests of the search share: a small graph with a split of its own, and searches on it."""

from pathlib import Path

import numpy as np
from cli_cases import write_graph, write_nodes

__all__ = ["SEARCH", "write_search", "write_split_graph"]

SEARCH = """
title = "a search"
datasets = ["graph/"]
model = "mlp"
splits = "0"
trials = 6
[set]
epochs = 3
[search]
lr = { low = 1e-3, high = 1e-1, log = true }
hidden = [2, 4]
dropout = { low = 0.0, high = 0.6, step = 0.2 }
"""


def write_search(directory: Path, *changes: tuple[str, str]) -> Path:
    """search.toml, with parts of it replaced."""
    text = SEARCH
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = directory / "search.toml"
    path.write_text(text)
    return path


def write_split_graph(directory: Path, test_labels: str = "ab") -> Path:
    """A graph whose file says who trains, validates and tests; `test_labels` are those of the test nodes, in turn."""
    write_graph(directory)
    rng = np.random.default_rng(0)
    rows = [["id", "label", "split", "f0", "f1"]]
    for node in range(30):
        part = ("train", "val", "test")[node // 2 % 3]
        label = "ab"[node % 2] if part != "test" else test_labels[node % len(test_labels)]
        rows.append([f"n{node}", label, part, *(f"{value:.4f}" for value in rng.normal(size=2) + node % 2)])
    write_nodes(directory, rows)
    return directory
