"""What the paper says that its datasets hold, beside what their files hold."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from gind.datasets.entry import Counts
from gind.datasets.table import DATASETS, measured
from gind.reports.paper import PaperTable
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
_PAIRS = "Edges"
"""what is counted in two ways"""


def counts_table(printed: PaperTable) -> list[str]:
    """A line for each dataset; then what is one count and differs."""
    rows, differ = [], []
    for dataset in [name for own in printed.datasets for name in (own, printed.beside.get(own, "")) if name]:
        line = [dataset]
        for row in printed.rows:
            quoted, here = printed.value(row, dataset), _COUNTS[row](DATASETS[dataset].counts)
            line += ["" if quoted is None else quoted.text, _shown(here)]
            if row == _PAIRS:
                line.append(_shown(measured()[dataset].undirected_edges))
            elif quoted is not None and abs(here - quoted.mean) >= _last_digit(quoted.text):
                differ.append(f"- {dataset}: {row} is {quoted.text} in the paper and {_shown(here)} in the files.")
        rows.append(line)
    titles = ["dataset"]
    for row in printed.rows:
        titles += [f"paper: {row}", *(["stored", "pairs"] if row == _PAIRS else ["here"])]
    far = ["Where they differ:", "", *differ, ""] if differ else []
    return [*([printed.note, ""] if printed.note else []), *table(titles, rows), "", *far]


def _shown(count: float) -> str:
    return f"{count:,}" if isinstance(count, int) else f"{count:,.1f}"


def _last_digit(text: str) -> float:
    """One unit of the last digit: a number that is cut off instead of rounded is the same."""
    return float(10.0 ** -len(text.partition(".")[2]))
