"""What the paper says that its datasets hold, beside what their files hold."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gind.datasets.entry import Counts
from gind.datasets.table import DATASETS, Measured, measured
from gind.reports.paper import PaperTable, PaperValue
from gind.text import table

__all__ = ["counts_table"]

_COUNTS: Mapping[str, Callable[[Counts], float]] = MappingProxyType(
    {
        "Nodes": lambda counts: counts.nodes,
        "Edges": lambda counts: counts.edges,
        "Features": lambda counts: counts.features,
        "Classes": lambda counts: counts.classes,
        "# graphs": lambda counts: counts.graphs,
        "Avg # nodes": lambda counts: counts.nodes / counts.graphs,
    }
)
_EDGES = "Edges"
"""what is counted in three ways; the last, pairs and loops, is compared with the paper"""
_WAYS = ("stored", "pairs", "pairs and loops")


def counts_table(printed: PaperTable) -> list[str]:
    """A line for each dataset; then whose edges are the paper's, and what differs."""
    rows, differ, same = [], [], []
    for dataset in [name for own in printed.datasets for name in (own, printed.beside.get(own, "")) if name]:
        line = [dataset]
        for row in printed.rows:
            quoted, here = printed.value(row, dataset), _COUNTS[row](DATASETS[dataset].counts)
            line += ["" if quoted is None else quoted.text, _shown(here)]
            words = "in the files."
            if row == _EDGES:
                seen = measured()[dataset]
                here = seen.undirected_edges_and_loops
                line += [_shown(seen.undirected_edges), _shown(here)]
                words = f"pairs and loops {words}{_listed(seen, quoted)}"
            if quoted is None:
                continue
            if abs(here - quoted.mean) >= _last_digit(quoted.text):
                differ.append(f"- {dataset}: {row} is {quoted.text} in the paper and {_shown(here)} {words}")
            elif row == _EDGES:
                same.append(dataset)
        rows.append(line)
    titles = ["dataset"]
    for row in printed.rows:
        titles += [f"paper: {row}", *(_WAYS if row == _EDGES else ["here"])]
    exact = f"The paper's edges are exactly pairs and loops on {len(same)} of {len(rows)} datasets: {', '.join(same)}."
    near = [exact, ""] if same else []
    far = ["Where they differ:", "", *differ, ""] if differ else []
    return [*([printed.note, ""] if printed.note else []), *table(titles, rows), "", *near, *far]


def _listed(seen: Measured, quoted: PaperValue | None) -> str:
    """Where the paper's edges are half the entries of the adjacency lists in the files, that they are."""
    if quoted is None or seen.listed_edges is None or seen.listed_edges != 2 * quoted.mean:
        return ""
    return (
        f" The paper's number is half of the {_shown(seen.listed_edges)} entries of their adjacency lists, "
        "in which some links are repeated."
    )


def _shown(count: float) -> str:
    return f"{count:,}" if isinstance(count, int) else f"{count:,.1f}"


def _last_digit(text: str) -> float:
    """One unit of the last digit: a number that is cut off instead of rounded is the same."""
    return float(10.0 ** -len(text.partition(".")[2]))
