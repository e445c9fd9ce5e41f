"""Generated graphs, and writers of each format that a graph is read from."""

import csv
import dataclasses
from collections.abc import Callable
from pathlib import Path

import networkx
import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.parquet
import scipy.sparse
from hypothesis import strategies as st

__all__ = ["PARTS", "WRITERS", "Case", "cases", "write_graphml"]

PARTS = ["train", "val", "test"]
CLASSES = [["-3", "2", "10"], ["A", "b, c", 'd "e"', "é\nf"], ["10a", "2", "漢"]]


@dataclasses.dataclass(frozen=True)
class Case:
    """A graph and what is to be read: the classes in their order, the label of each node among them or -1."""

    ids: list[str]
    x: npt.NDArray[np.float32]
    classes: list[str]
    y: list[int]
    split: list[str]
    edges: list[tuple[int, int]]
    weight: list[float]

    @property
    def labels(self) -> list[str]:
        return ["" if number < 0 else self.classes[number] for number in self.y]

    def ends(self) -> tuple[list[str], list[str]]:
        return [self.ids[i] for i, _ in self.edges], [self.ids[j] for _, j in self.edges]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    texts = st.text(st.sampled_from("abz019,;'\"\t\n <&>éß漢😀"), min_size=1, max_size=6)
    ids = draw(st.lists(texts.map(str.strip).filter(bool), min_size=6, max_size=12, unique=True))
    classes = draw(st.sampled_from(CLASSES))
    count = len(ids)
    # one node of each class and of each part of the split, the rest is free
    free = st.lists(st.integers(-1, len(classes) - 1), min_size=count, max_size=count)
    y = [*range(len(classes)), *draw(free)][:count]
    choice = st.lists(st.sampled_from([*PARTS, ""]), min_size=count, max_size=count)
    split = [part if number >= 0 else "" for part, number in zip([*PARTS, *draw(choice)], y, strict=False)]
    values = st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.5, 1e-30, 3e38]) | st.floats(-100, 100, width=32)
    width = draw(st.integers(1, 5))
    x = np.array(draw(st.lists(values, min_size=count * width, max_size=count * width)), np.float32)
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    edges = draw(st.lists(pairs, min_size=1, max_size=20))
    weight = draw(st.lists(st.floats(0, 100, width=32), min_size=len(edges), max_size=len(edges)))
    return Case(ids, x.reshape(count, width), classes, y, split, edges, weight)


def write_delimited(
    directory: Path, case: Case, delimiter: str = ",", suffix: str = "csv", encoding: str | None = None
) -> None:
    def write(name: str, header: list[str], columns: list[list[str]]) -> None:
        with open(directory / f"{name}.{suffix}", "w", newline="", encoding=encoding) as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerow(header)
            writer.writerows(zip(*columns, strict=True))

    names = [f"f{index}" for index in range(case.x.shape[1])]
    features = [[repr(float(value)) for value in column] for column in case.x.T]
    write("nodes", ["id", *names, "label", "split"], [case.ids, *features, case.labels, case.split])
    write("edges", ["source", "target", "weight"], [*case.ends(), list(map(repr, case.weight))])


def write_excel(directory: Path, case: Case) -> None:
    write_delimited(directory, case, ";", encoding="utf-8-sig")


def write_tsv(directory: Path, case: Case) -> None:
    write_delimited(directory, case, "\t", "tsv")


def write_parquet(directory: Path, case: Case) -> None:
    features = {f"f{index}": column for index, column in enumerate(case.x.T)}
    # as pandas writes strings of a few values, and with nulls for what is empty
    labels = pyarrow.array([label or None for label in case.labels]).dictionary_encode()
    nodes = {"id": case.ids, **features, "label": labels, "split": [part or None for part in case.split]}
    edges = dict(zip(("from", "to", "weight"), (*case.ends(), case.weight), strict=True))
    pyarrow.parquet.write_table(pyarrow.table(nodes), directory / "nodes.parquet")
    pyarrow.parquet.write_table(pyarrow.table(edges), directory / "edges.parquet")


def write_npz(directory: Path, case: Case) -> None:
    np.savez(directory / "nodes.npz", x=case.x, y=case.labels, id=case.ids, split=case.split)
    source, target = case.ends()
    np.savez(directory / "edges.npz", src=source, dst=target, weight=case.weight)


def write_npz_sparse(directory: Path, case: Case) -> None:
    x = scipy.sparse.csr_matrix(case.x)
    parts = {"data": x.data, "indices": x.indices, "indptr": x.indptr, "shape": x.shape, "format": b"csr"}
    np.savez(directory / "nodes.npz", label=case.labels, split=np.array(case.split)[:, None], id=case.ids, **parts)
    # ids that are all digits are ambiguous with an edge_index
    by_row = not all(name.isdecimal() for name in case.ids)
    source, target = case.ends()
    ends = {"edge_index": np.array(case.edges).T} if by_row else {"source": source, "target": target}
    np.savez(directory / "edges.npz", weight=np.array(case.weight, np.float32), **ends)


def write_graphml(directory: Path, case: Case) -> None:
    graph = networkx.MultiDiGraph()
    for row, name in enumerate(case.ids):
        features = {f"f{index}": float(value) for index, value in enumerate(case.x[row])}
        text = {"label": case.labels[row], "split": case.split[row]}
        graph.add_node(name, **features, **{key: value for key, value in text.items() if value})
    graph.add_weighted_edges_from(
        (case.ids[i], case.ids[j], weight) for (i, j), weight in zip(case.edges, case.weight, strict=True)
    )
    networkx.write_graphml(graph, directory / "any name.graphml")


WRITERS: list[Callable[[Path, Case], None]] = [
    write_delimited,
    write_excel,
    write_tsv,
    write_parquet,
    write_npz,
    write_npz_sparse,
    write_graphml,
]
